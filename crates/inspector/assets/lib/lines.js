// A line diff of two short texts, for a change that is proposed and not made yet.

const MOST = 2000;

function compare(a, b) {
  const [n, m] = [a.length, b.length];
  const table = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
  for (let i = n - 1; i >= 0; i -= 1) for (let j = m - 1; j >= 0; j -= 1) table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
  const out = [];
  let [i, j] = [0, 0];
  while (i < n || j < m) {
    if (i < n && j < m && a[i] === b[j]) { out.push(` ${a[i]}`); i += 1; j += 1; }
    else if (i < n && (j === m || table[i + 1][j] >= table[i][j + 1])) { out.push(`-${a[i]}`); i += 1; }
    else { out.push(`+${b[j]}`); j += 1; }
  }
  return out;
}

const split = (text) => { const lines = text.split("\n"); if (lines.at(-1) === "") lines.pop(); return lines; };

/** A unified diff with three lines around what differs. The texts of large files are shown as replaced. */
export function unified(before, after) {
  const [a, b] = [split(before), split(after)];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const [old, fresh] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  if (!old.length && !fresh.length) return "";
  const middle = old.length * fresh.length > MOST * MOST / 4 ? [...old.map((line) => `-${line}`), ...fresh.map((line) => `+${line}`)] : compare(old, fresh);
  const from = Math.max(0, head - 3);
  const lead = a.slice(from, head).map((line) => ` ${line}`);
  const rest = a.slice(a.length - tail, a.length - tail + 3).map((line) => ` ${line}`);
  return [`@@ line ${from + 1} @@`, ...lead, ...middle, ...rest].join("\n");
}
