// From disk a browser reads no other page: the search shows titles there, without excerpts.
DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = location.protocol !== "file:";

// What scrolls sideways can be reached with the keyboard.
addEventListener("load", () => {
  const reach = () => document.querySelectorAll("div.math, mjx-container, .output.text_html").forEach((one) => {
    if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
    else one.removeAttribute("tabindex");
  });
  (window.MathJax?.startup?.promise ?? Promise.resolve()).then(reach);
  addEventListener("resize", reach);
});
