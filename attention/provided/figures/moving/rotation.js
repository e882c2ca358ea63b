// Lesson 08: each pair of features is turned by its own angle for each step of the position.
const Q = [1, 0.4, 0.9, -0.3, 0.2, 1, -0.5, 0.8];
const K = [0.8, -0.6, 0.5, 0.7, 0.9, 0.5, 0.1, 1];
const D = Q.length, FAR = 24, PAIRS = range(0, D / 2 - 1);
const kind = choice("positions", ["rotary: q and k are turned", "sinusoidal: the encodings"]);
const m = slider("m, of the query", range(0, FAR), 5);
const n = slider("n, of the key", range(0, FAR), 2);
const both = slider("both later by", range(0, 40), 0);

const pairs = (x, position) => PAIRS.map((i) => {
  const angle = position / 10000 ** (2 * i / D), cos = Math.cos(angle), sin = Math.sin(angle);
  if (kind.index() === 1) return [sin, cos];
  const [first, second] = [x[2 * i], x[2 * i + 1]];
  return [first * cos - second * sin, first * sin + second * cos];
});
const dot = (a, b) => sum(a.map(([x, y], i) => x * b[i][0] + y * b[i][1]));

figure(() => {
  const at = m() + both(), to = n() + both(), q = pairs(Q, at), k = pairs(K, to);
  const product = dot(q, k);
  const on = sheet("Each pair of features as an arrow: query at m (thick), key at n (thin)", 140);
  const wide = on.width / PAIRS.length, r = Math.min(55, wide / 2 - 6);
  PAIRS.forEach((i) => {
    const x = wide * (i + 0.5), y = 60, long = r / 1.15;
    on.put("circle", { cx: x, cy: y, r, class: "rule", fill: "none" });
    const arrow = ([right, up], colour, width) => on.rule(x, y, x + long * right, y - long * up,
      `stroke-${colour}`, { "stroke-width": width, "stroke-linecap": "round" });
    arrow(q[i], "a", 5);
    arrow(k[i], "b", 2.5);
    on.text(x, 134, `pair ${i}`, { "text-anchor": "middle", class: "soft" });
  });
  const shifts = range(-FAR, FAR);
  const products = shifts.map((shift) => dot(pairs(Q, 64 + shift), pairs(K, 64)));
  const low = Math.floor(Math.min(...products)), high = Math.ceil(Math.max(...products));
  const below = panel({ title: "Dot product for every m − n", x: [-FAR, FAR], y: [low, high],
    across: "m − n" });
  below.line(shifts.map((shift, i) => [shift, products[i]]), "ink");
  below.upright(m() - n(), "a");
  below.dots([[m() - n(), product]], "a", 6);
  return [`Query at position ${at}, key at ${to}: m − n = ${m() - n()}, dot product `
    + `${product.toFixed(3)}. Pair 0 turns by a radian for each position, pair ${D / 2 - 1} by `
    + `${(10000 ** (2 / D - 1)).toPrecision(1)}.`,
    { kind: kind.index(), at, to, Q, K, q: q.flat(), k: k.flat(), product, products }];
});
