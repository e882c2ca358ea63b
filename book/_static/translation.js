// The picture on the first page is whole as it stands. This writes it once, letter by letter, and
// again for other numbers when asked to; where a reader wants less motion, it only changes numbers.
addEventListener("DOMContentLoaded", () => {
  const figure = document.querySelector("figure.translation");
  if (!figure) return;
  const PACE = 170; // milliseconds a letter: less than five seconds a number
  const drawings = [...figure.querySelectorAll("svg")], button = figure.querySelector("button");
  let shown = 0, timer;

  const write = (drawing, count) => {
    const letters = [...drawing.querySelectorAll("g")], words = drawing.querySelectorAll("rect");
    const done = count > letters.length, now = letters[count - 1];
    letters.forEach((letter, index) => {
      letter.classList.toggle("later", index >= count);
      letter.classList.toggle("now", letter === now);
    });
    const weights = now ? now.dataset.weights.split(" ") : [];
    words.forEach((word, index) => (word.style.fillOpacity = weights[index] ?? 0));
    if (!done) timer = setTimeout(write, PACE, drawing, count + 1);
  };
  const play = () => {
    clearTimeout(timer);
    drawings.forEach((one, index) => one.toggleAttribute("hidden", index !== shown));
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    write(drawings[shown], still ? Infinity : 0);
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    shown = (shown + 1) % drawings.length;
    play();
  });
  play();
});
