// Lesson 01: kernel regression. data: hours, levels (the examples), truth (the true levels).
const KERNELS = {
  Gaussian: (u) => Math.exp(-u * u / 2),
  boxcar: (u) => Number(Math.abs(u) <= 1),
  Epanechnikov: (u) => Math.max(0, 1 - u * u),
  constant: () => 1,
};
const kernel = choice("kernel", Object.keys(KERNELS));
const bandwidth = slider("bandwidth", evenly(0.02, 3, 61), 0.3, (h) => `${h.toPrecision(2)} h`);
const query = slider("query at", range(0, 6, 0.05), 2.2, (x) => `${x.toFixed(2)} h`);

const weigh = (x) => {
  const alike = data.hours.map((key) => KERNELS[kernel()]((x - key) / bandwidth()));
  const total = sum(alike); // 0: no example in reach, and all count the same
  return alike.map((one) => total ? one / total : 1 / alike.length);
};
const predict = (weights) => sum(weights.map((weight, j) => weight * data.levels[j]));

figure(() => {
  const places = range(0, 6, 0.05), fit = places.map((x) => predict(weigh(x)));
  const weights = weigh(query()), said = predict(weights), at = query();
  const zip = (xs, ys) => xs.map((x, i) => [x, ys[i]]);
  const above = panel({ title: "Level: examples, true level (dashed) and prediction (line)",
    x: [0, 6], y: [-2.2, 2.2], across: "hours", height: 230 });
  above.upright(at, "b");
  above.line(zip(places, data.truth), "soft", "dashed");
  zip(data.hours, data.levels).forEach(([x, y], j) =>
    above.dots([[x, y]], "ink", 2 + 10 * Math.sqrt(weights[j]) / 2));
  above.line(zip(places, fit), "a");
  above.dots([[at, said]], "b", 6);
  const below = panel({ title: "Weight of each example for this query", x: [0, 6],
    y: [0, Math.max(0.1, ...weights)], across: "hours", height: 150 });
  below.upright(at, "b");
  weights.forEach((weight, j) => below.bar(data.hours[j], weight, "a", 0.04));
  const counting = weights.filter((weight) => weight > 0.01).length;
  return [`${kernel()} kernel, bandwidth ${bandwidth().toPrecision(2)} h. At ${at.toFixed(2)} h `
    + `the prediction is ${said.toFixed(2)} dm. ${counting} of ${weights.length} examples have a `
    + `weight above 0.01; the largest is ${Math.max(...weights).toFixed(2)}. The larger a dot, the `
    + "more it counts.",
    { kernel: kernel(), bandwidth: bandwidth(), places, fit, at, weights, said }];
});
