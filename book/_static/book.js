// From disk a browser reads no other page: the search shows titles there, without excerpts.
DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = location.protocol !== "file:";

// MyST-NB calls each fold "Toggle hidden content", also where its summary says what is in it.
addEventListener("DOMContentLoaded", () => {
  for (const one of document.querySelectorAll("details.hide > summary")) one.removeAttribute("aria-label");
});

// Read aloud, a program and what it printed are one run of words unless each says what it is.
const CELL = { ".cell_input": "code", ".cell_output": "output" };
const called = (one, name) => {
  if (name) one.setAttribute("aria-label", name), one.setAttribute("role", "group");
  else one.removeAttribute("aria-label"), one.removeAttribute("role");
};
const ordinarily = (one) => CELL[Object.keys(CELL).find((where) => one.matches(where))];
addEventListener("DOMContentLoaded", () => {
  for (const one of document.querySelectorAll(Object.keys(CELL))) called(one, ordinarily(one));
});

// What scrolls sideways can be reached with the keyboard, and says what it is.
const WHAT = { "div.math, mjx-container": "formula", ".output.text_html": "output", ".cell_output": "figure" };
addEventListener("load", () => {
  const scrolls = (one) => one.scrollWidth > one.clientWidth && getComputedStyle(one).overflowX === "auto";
  const reach = () => {
    for (const [where, what] of Object.entries(WHAT)) {
      for (const one of document.querySelectorAll(where)) {
        if (scrolls(one)) {
          one.tabIndex = 0;
          called(one, `${what}, wider than the page`);
        } else if (one.tabIndex === 0) {
          one.removeAttribute("tabindex");
          called(one, ordinarily(one));
        }
      }
    }
  };
  (window.MathJax?.startup?.promise ?? Promise.resolve()).then(reach);
  addEventListener("resize", reach);
});

// The theme takes the focus from a button that opens or closes a sidebar. It is given back at once,
// before a sidebar that covers the page opens, so that it is there again when that closes.
addEventListener("click", (event) => {
  const button = event.target.closest?.("button.sidebar-toggle");
  if (!button) return;
  const back = () => button.focus();
  button.addEventListener("blur", back, { once: true });
  setTimeout(() => button.removeEventListener("blur", back));
}, true);
