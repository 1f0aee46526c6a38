// A word diff: E. W. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986, without the equal ends of the
// texts. Texts that differ too much are compared by line, or not at all.

const WORDS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[\p{L}\p{M}\p{N}_]+|\n|[^\S\n]+|[^]/gu;
const MOST_EDITS = 600;
// Below this share of common text a diff is harder to read than both texts.
const LEAST_SHARED = 0.3;

function diff(before, after) {
  for (const pattern of [WORDS, /[^\n]*\n|[^\n]+/g]) {
    const parts = compare(before.match(pattern) || [], after.match(pattern) || []);
    if (parts) return readable(parts);
  }
  return readable([["del", before], ["ins", after]]);
}

function compare(a, b) {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const middle = edits(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  if (!middle) return null;
  return [["same", a.slice(0, head).join("")], ...middle, ["same", a.slice(a.length - tail).join("")]];
}

function edits(a, b) {
  const most = Math.min(a.length + b.length, MOST_EDITS);
  // The progress of each diagonal; diagonal k is at index most + 1 + k.
  const reached = new Int32Array(2 * most + 3);
  const trace = [];
  for (let d = 0; d <= most; d += 1) {
    trace.push(reached.slice(most - d, most + d + 3));
    for (let k = -d; k <= d; k += 2) {
      const here = most + 1 + k;
      let x = goesDown(reached, here, k, d) ? reached[here + 1] : reached[here - 1] + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      reached[here] = x;
      if (x >= a.length && x - k >= b.length) return walkBack(trace, a, b);
    }
  }
  return null;
}

function goesDown(reached, here, k, d) {
  return k === -d || (k !== d && reached[here - 1] < reached[here + 1]);
}

function walkBack(trace, a, b) {
  const parts = [];
  let x = a.length;
  let y = b.length;
  for (let d = trace.length - 1; d >= 0; d -= 1) {
    const k = x - y;
    const from = goesDown(trace[d], d + 1 + k, k, d) ? k + 1 : k - 1;
    const fromX = d === 0 ? 0 : trace[d][d + 1 + from];
    const fromY = d === 0 ? 0 : fromX - from;
    while (x > fromX && y > fromY) parts.push(["same", a[(x -= 1, y -= 1, x)]]);
    if (d > 0) parts.push(x > fromX ? ["del", a[(x -= 1)]] : ["ins", b[(y -= 1)]]);
  }
  return parts.reverse();
}

// Runs of [kind, text]. A few equal words between longer changes are a coincidence: they become part of the change
// around them.
function readable(parts) {
  const groups = grouped(parts);
  for (let place = 1; place < groups.length - 1; place += 1) {
    const [before, { same }, after] = groups.slice(place - 1, place + 2);
    const small = Math.min(Math.max(before.del.length, before.ins.length), Math.max(after.del.length, after.ins.length));
    if (!same || (same.length > small && /[\p{L}\p{N}]/u.test(same))) continue;
    const joined = { same: "", del: before.del + same + after.del, ins: before.ins + same + after.ins };
    groups.splice(place - 1, 3, joined);
    place = Math.max(0, place - 3);
  }
  return groups.flatMap(({ same, del, ins }) => [["same", same], ["del", del], ["ins", ins]]).filter(([, text]) => text);
}

function grouped(parts) {
  const groups = [];
  for (const [kind, text] of parts) {
    if (!text) continue;
    const last = groups[groups.length - 1];
    if (last && (kind === "same") === Boolean(last.same)) last[kind] += text;
    else groups.push({ same: "", del: "", ins: "", [kind]: text });
  }
  return groups;
}

function sharedPart(runs) {
  const length = (kinds) => runs.reduce((sum, [kind, text]) => sum + (kinds.includes(kind) ? text.length : 0), 0);
  return (2 * length(["same"])) / Math.max(1, 2 * length(["same"]) + length(["del", "ins"]));
}

function diffBlock(runs) {
  const shown = runs.map(([kind, text]) =>
    kind === "same" ? visible(text) : h(kind, {}, /\S/.test(text) ? visible(text) : blanks(text)),
  );
  return block(shown, { class: "diff" });
}
