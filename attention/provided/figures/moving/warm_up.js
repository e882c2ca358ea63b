// Lesson 11: the learning rate of Vaswani et al., equation 3, against the step.
const LAST = 20000;
const warm = slider("warm-up", [100, 250, 500, 1000, 2000, 4000, 8000, 16000], 1000,
  (n) => `${n.toLocaleString("en")} steps`);
const size = slider("d_model", [64, 128, 256, 512, 1024], 512);
const step = slider("read at step", [1, ...range(250, LAST, 250)], 4000,
  (n) => n.toLocaleString("en"));
const rate = (at, d, warmup) => d ** -0.5 * Math.min(at * warmup ** -1.5, at ** -0.5);

figure(() => {
  const steps = [...range(1, 251, 10), ...range(300, LAST, 50)], said = (x) => x.toPrecision(3);
  steps.splice(0, steps.length, ...[...steps, warm(), 4000].filter((one) => one <= LAST)
    .sort((a, b) => a - b)); // with the peaks of both lines
  const rates = steps.map((at) => rate(at, size(), warm()));
  const papers = steps.map((at) => rate(at, 512, 4000)), now = rate(step(), size(), warm());
  const on = panel({ title: "Learning rate; dashed: the paper's, d_model 512, warm-up 4,000",
    x: [0, LAST], y: [0, 1.05 * Math.max(...rates, ...papers)], across: "step", height: 240 });
  const zip = (numbers) => steps.map((at, i) => [at, numbers[i]]);
  on.line(zip(papers), "soft", "dashed");
  on.upright(step(), "b");
  on.line(zip(rates), "a");
  on.dots([[step(), now]], "b", 5);
  const peak = rate(warm(), size(), warm()), top = warm().toLocaleString("en");
  return [`Warm-up ${top} steps, d_model ${size()}: the rate rises to ${said(peak)} at step `
    + `${top}, then falls with 1 / √step. At step ${step().toLocaleString("en")} it is `
    + `${said(now)}.`,
    { steps, rates, papers, warmup: warm(), d_model: size(), step: step(), now, peak }];
});
