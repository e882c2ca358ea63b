// Lesson 06: who sees whom, at once and after some layers. data: bigbird, a string for each row.
const T = data.bigbird.length;
const square = (sees) => range(0, T - 1).map((i) => range(0, T - 1).map((j) => sees(i, j)));
const MASKS = {
  "local": (n) => square((i, j) => Math.abs(i - j) <= n),
  "causal": () => square((i, j) => j <= i),
  "padding": (n) => square((i, j) => j < n),
  "Longformer, global 0": (n) => square((i, j) => Math.abs(i - j) <= n || i === 0 || j === 0),
  "BigBird, blocks of 2": () => square((i, j) => data.bigbird[i][j] === "1"),
  "full": () => square(() => true),
};
const takes = () => ({ padding: "real keys", local: "window" })[mask()]
  || (mask().startsWith("Long") ? "window" : "");
const mask = choice("mask", Object.keys(MASKS), () => {
  size.choose(takes() === "real keys" ? 18 : 2);
  size.enable(takes());
});
const size = slider("size", range(0, T), 2,
  (n) => takes() ? `${takes()}: ${n}` : "not used");
const layers = slider("layers", range(1, T), 1);
const query = slider("query", range(0, T - 1), 12);

// Who is reached through one more layer: rows of `reach` joined with rows of `sees`.
const further = (reach, sees) => reach.map((row) =>
  sees[0].map((_, j) => row.some((seen, through) => seen && sees[through][j])));
const all = (reach) => reach.every((row) => row.every(Boolean));
const meets = (sees) => {
  let reach = sees;
  for (let n = 1; n <= T; n++, reach = further(reach, sees)) if (all(reach)) return n;
  return null;
};

figure(() => {
  const sees = MASKS[mask()](size());
  let reach = sees;
  for (let n = 1; n < layers(); n++) reach = further(reach, sees);
  const numbers = (rows) => rows.map((row) => row.map(Number)), marked = query();
  heat({ title: "Who sees whom: queries down, keys across", rows: numbers(sees), marked,
    parts: 2 });
  heat({ title: `Who is reached: ${many(layers(), "layer")}`, rows: numbers(reach), marked,
    kind: "c", parts: 2 });
  const listed = (row) => row.flatMap((one, j) => one ? [j] : []), meet = meets(sees);
  const [near, far] = [sees, reach].map((rows) => listed(rows[marked]));
  return [`${mask()}${takes() ? `, ${takes()} ${size()}` : ""}: position ${marked} sees `
    + `${many(near.length, "position")}${near.length < 13 ? `: ${near.join(", ")}` : ""}. After `
    + `${many(layers(), "layer")} it can depend on ${many(far.length, "position")}. `
    + (meet ? `All depend on all after ${many(meet, "layer")}.` : "All on all: never."),
    { mask: mask(), size: size(), layers: layers(), sees: numbers(sees), reach: numbers(reach),
      meet }];
});
