// Lesson 16: a digit with one patch blanked. data: a list of {label, ink (8 rows of 0 to 16),
// shares in 10,000ths: of all ten classes, first of the whole image, then without each patch}.
const SIZE = 2, SIDE = 8 / SIZE;
const digit = choice("image", data.map(({ label }, i) => `${i + 1}: a ${label}`));
const blank = slider("blank patch", range(0, SIDE * SIDE), 0, (n) => n ? String(n) : "none");

figure(() => {
  const { label, ink, shares } = data[digit.index()];
  const all = shares.map((row) => row.map((one) => one / 10000)), now = all[blank()];
  const gone = (i, j) => 1 + Math.floor(i / SIZE) * SIDE + Math.floor(j / SIZE) === blank();
  const rows = ink.map((row, i) => row.map((one, j) => gone(i, j) ? 0 : one / 16));
  const image = heat({ title: "What the model sees", rows, kind: "ink", parts: 3 });
  range(0, SIDE).forEach((i) => {
    const [from, to, at] = [0, 8, SIZE * i];
    image.rule(image.X(from), image.Y(at), image.X(to), image.Y(at), "stroke-soft");
    image.rule(image.X(at), image.Y(from), image.X(at), image.Y(to), "stroke-soft");
  });
  const mark = (on, cells, side) => {
    if (blank()) on.put("rect", { x: on.X((blank() - 1) % SIDE * cells), width: side,
      y: on.Y(Math.floor((blank() - 1) / SIDE) * cells), height: side, class: "stroke-b",
      "stroke-width": 3 });
  };
  mark(image, SIZE, SIZE * image.cell);
  const drops = all.slice(1).map((row) => all[0][label] - row[label]);
  const most = Math.max(...drops, 1e-4), map = range(0, SIDE - 1).map((i) =>
    drops.slice(SIDE * i, SIDE * (i + 1)).map((one) => Math.max(0, one) / most));
  const lost = heat({ title: `Lost without it, up to ${most.toFixed(2)}`, rows: map, parts: 3,
    largest: 48 });
  mark(lost, 1, lost.cell);
  const bars = panel({ title: "Probabilities", y: [0, 1], names: range(0, 9).map(String),
    across: "class", parts: 3 });
  now.forEach((one, i) => bars.bar(i, one, i === label ? "a" : "soft"));
  const best = now.indexOf(Math.max(...now));
  return [`${blank() ? `Without patch ${blank()}` : "The whole image"}: the right class, ${label}, `
    + `has ${now[label].toFixed(3)}${blank() ? `, ${drops[blank() - 1].toFixed(3)} less` : ""}. `
    + `The model says ${best}${best === label ? "" : ", which is wrong"}.`,
    { label, blank: blank(), rows, shares: now, drops }];
});
