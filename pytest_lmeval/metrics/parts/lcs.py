"""The length of a longest common subsequence."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def lcs_length(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """Return the length of a longest common subsequence of two sequences.

    Bit-parallel: one integer holds a whole row of the textbook table, a 0 at each column where the row grows by
    one, and each item of the longer sequence makes the next row with an addition. Allison and Dix (1986), "A
    bit-string longest-common-subsequence algorithm", in the form of Hyyrö (2004), "Bit-parallel LCS-length
    computation revisited". Takes ``O(long * short / word)`` time and ``O(distinct * short)`` bits.
    """
    short, long = sorted((left, right), key=len)
    places: dict[Hashable, int] = {}
    for place, item in enumerate(short):
        places[item] = places.get(item, 0) | 1 << place
    columns = (1 << len(short)) - 1
    row = columns
    for item in long:
        if item in places:
            matches = row & places[item]
            row = row + matches | row - matches
    # Carries leave the row to the left, where nothing reads them: cut off once, not at every step.
    return len(short) - (row & columns).bit_count()
