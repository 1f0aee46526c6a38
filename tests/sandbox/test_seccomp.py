"""The filter on system calls, run by a small machine of our own: also for the architecture that is not this one."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.sandbox.inside.seccomp import ABSENT, ALLOW, CHECKED, DENY, KILL, SELF, SERVER, Filter
from pytest_lmeval.sandbox.inside.syscalls import AARCH64, X86_64, Machine, machine

PID = 4711
MACHINES = {name: machine(name) for name in ("aarch64", "x86_64")}


def decide(code: bytes, architecture: int, number: int, *arguments: int) -> int:
    """Return what a classic packet filter says of a system call."""
    data = struct.pack("<IIQ6Q", number, architecture, 0, *[*arguments, *[0] * 6][:6])
    lines = list(struct.iter_unpack("<HBBI", code))
    place, accumulator = 0, 0
    while True:
        operation, yes, no, k = lines[place]
        place += 1
        if operation == 0x20:
            [accumulator] = struct.unpack_from("<I", data, k)
        elif operation == 0x54:
            accumulator &= k
        elif operation == 0x05:
            place += k
        elif operation in (0x15, 0x35):
            place += yes if (accumulator == k if operation == 0x15 else accumulator >= k) else no
        else:
            assert 0x06 == operation
            return int(k)


class Decider:
    def __init__(self, here: Machine, more: str = "") -> None:
        self.here = here
        self.code = Filter(more, here).code(PID)

    def __call__(self, name: str, *arguments: int) -> int:
        return decide(self.code, self.here.token, self.here.numbers[name], *arguments)


@pytest.fixture(scope="module", params=MACHINES)
def ask(request: pytest.FixtureRequest) -> Decider:
    return Decider(MACHINES[request.param])


def test_every_free_call_is_allowed_and_every_other_is_not(ask: Decider) -> None:
    free = {number for name, number in ask.here.numbers.items() if name not in {*CHECKED, *SERVER.split()}}
    allowed = {n for n in range(1000) if decide(ask.code, ask.here.token, n) == ALLOW}
    # With all arguments zero, some of those that are looked at are fine, too.
    looked_at = {ask.here.numbers[name] for name in ("close_range", "fcntl", "kill", "mmap", "prlimit64")}

    assert free < allowed
    assert looked_at | {ask.here.numbers["sendto"]} == allowed - free


def test_a_number_that_no_kernel_has_is_absent_and_one_that_is_not_named_is_denied(ask: Decider) -> None:
    used = {n for first, last in ask.here.ranges for n in range(first, last + 1)}
    for number in set(range(700)) - set(ask.here.numbers.values()):
        assert (DENY if number in used else ABSENT) == decide(ask.code, ask.here.token, number), number
    assert ABSENT == ask("clone3", 0, 0)


@given(number=st.integers(0, 2**32 - 1), arguments=st.lists(st.integers(0, 2**64 - 1), min_size=6, max_size=6))
def test_the_filter_ends_whatever_it_is_asked(number: int, arguments: list[int]) -> None:
    for here in MACHINES.values():
        assert decide(Filter("", here).code(PID), here.token, number, *arguments) in (ALLOW, DENY, ABSENT, KILL)


def test_another_architecture_and_the_second_interface_end_the_process(ask: Decider) -> None:
    other = next(here for here in MACHINES.values() if here.token != ask.here.token)

    assert KILL == decide(ask.code, other.token, ask.here.numbers["read"])
    assert KILL == decide(ask.code, 0x40000003, ask.here.numbers["read"])
    assert KILL == decide(ask.code, ask.here.token, 0x40000000 | ask.here.numbers["read"])
    assert KILL == decide(ask.code, ask.here.token, 2**32 - 1)


GROUP = -PID & 0xFFFFFFFF
CASES = [
    ("clone", (0x3D0F00,), True),
    ("clone", (0x7D0F00,), True),
    ("clone", (0x1200011,), False),
    ("clone", (0x4111,), False),
    ("clone", (0x3D0F00 | 0x10000000,), False),
    ("clone", (0x3D0F11,), False),
    ("kill", (PID,), True),
    ("kill", (0,), True),
    ("kill", (GROUP,), True),
    ("kill", (PID + 1,), False),
    ("kill", (2**32 - 1,), False),
    ("kill", (1,), False),
    ("tgkill", (PID,), True),
    ("tgkill", (0,), False),
    ("tkill", (PID + 1,), False),
    ("rt_sigqueueinfo", (PID - 1,), False),
    ("rt_tgsigqueueinfo", (PID - 1,), False),
    ("prlimit64", (PID,), True),
    ("prlimit64", (1,), False),
    ("socketpair", (1, 1), True),
    ("socketpair", (1, 1 | 0x80800), True),
    ("socketpair", (1, 2), False),
    ("socketpair", (1, 5), False),
    ("socketpair", (2, 1), False),
    ("sendto", (5, 6, 7, 8, 0), True),
    ("sendto", (5, 6, 7, 8, 1), False),
    ("sendto", (5, 6, 7, 8, 1 << 32), False),
    ("close_range", (5, 6, 4), True),
    ("close_range", (5, 6, 2), False),
    ("fcntl", (5, 3), True),
    ("fcntl", (5, 8), False),
    ("fcntl", (5, 1026), False),
    ("ioctl", (0, 0x5401), True),
    ("ioctl", (0, 0x5412), False),
    ("mmap", (0, 4096, 3, 0x22), True),
    ("mmap", (0, 4096, 3, 0x01, 5), True),
    ("mmap", (0, 4096, 3, 0x02, 5), True),
    ("mmap", (0, 4096, 3, 0x21), False),
    ("mmap", (0, 4096, 3, 0x23), False),
    ("mmap", (0, 4096, 3, 0x10031), False),
    ("prctl", (15,), True),
    ("prctl", (1,), False),
    ("prctl", (22,), False),
    ("recvmsg", (5,), False),
    ("setsid", (), False),
]


def test_the_arguments_of_some_calls_are_looked_at(ask: Decider) -> None:
    expected = [(name, arguments, ALLOW if allowed else DENY) for name, arguments, allowed in CASES]
    assert expected == [(name, arguments, ask(name, *arguments)) for name, arguments, _ in CASES]


def test_the_server_may_do_what_it_needs_and_no_more_than_that() -> None:
    for here in MACHINES.values():
        server = Decider(here, SERVER)

        assert {ALLOW} == {server(name, 0x1200011) for name in SERVER.split()}
        assert DENY == server("socketpair", 2, 1)
        assert ABSENT == server("clone3")


def test_the_numbers_agree_where_both_tables_took_them_from_one_list() -> None:
    here, there = MACHINES.values()
    shared = {name for name, number in here.numbers.items() if number >= 424}

    assert shared == {name for name, number in there.numbers.items() if number >= 424}
    assert [here.numbers[name] for name in shared] == [there.numbers[name] for name in shared]


@pytest.mark.parametrize("table", [AARCH64, X86_64])
def test_no_number_has_two_names(table: str) -> None:
    numbers = [item.partition("=")[2] for item in table.split()]

    assert len(set(numbers)) == len(numbers)


def test_an_unknown_architecture_has_no_filter() -> None:
    with pytest.raises(OSError, match="no table of system calls for riscv64"):
        machine("riscv64")


def test_its_own_number_is_put_in_for_each_process() -> None:
    made = Filter("", MACHINES["x86_64"])

    assert SELF not in map(str, made.code(1))
    assert made.code(1) != made.code(2)
    assert made.code(1) == made.code(1)
