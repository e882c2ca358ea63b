// From disk a browser reads no other page: the search shows titles there, without excerpts.
DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = location.protocol !== "file:";

// MyST-NB calls each fold "Toggle hidden content", also where its summary says what is in it.
addEventListener("DOMContentLoaded", () => {
  for (const one of document.querySelectorAll("details.hide > summary")) one.removeAttribute("aria-label");
});

// What scrolls sideways can be reached with the keyboard.
addEventListener("load", () => {
  const reach = () => document.querySelectorAll("div.math, mjx-container, .output.text_html").forEach((one) => {
    if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
    else one.removeAttribute("tabindex");
  });
  (window.MathJax?.startup?.promise ?? Promise.resolve()).then(reach);
  addEventListener("resize", reach);
});
