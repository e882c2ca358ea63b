"""A page inside a notebook that shows any attention map of a model: pick sentence, layer, head.

The weights are in the page, so it needs no running kernel and no package. Where a viewer takes
scripts out, as GitHub does, it says so; lessons draw a fixed figure beside it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from IPython.display import HTML
from torch import Tensor


class Sentence(NamedTuple):
    """One sentence: its title, the maps (H, T_q, T_k) by name, and the tokens of each map."""

    title: str
    maps: Mapping[str, Tensor]
    labels: Mapping[str, tuple[Sequence[str], Sequence[str]]]  # name: queries, keys


PAGE = """<div class="maps" style="font: 13px sans-serif; background: white; color: #222;
 padding: 8px">
<span class="without">This needs scripts: open the notebook in JupyterLab and run the cell. The
lesson also draws some of the maps.</span>
<span class="with" style="display: none"><label>sentence <select name="sentence"></select></label>
 <label>attention <select name="map"></select></label>
 <label>head <select name="head"></select></label>
 <output style="display: block; margin: 4px 0"
 >Queries down, keys across; white is 0, dark 1.</output>
 <canvas role="img" aria-label="weights: queries down, keys across; white 0, dark 1"></canvas>
</span>
<script type="application/json">DATA</script>
<script>(() => {
const root = document.currentScript ? document.currentScript.parentElement
  : [...document.querySelectorAll("div.maps")].pop();
const all = JSON.parse(root.querySelector("script[type='application/json']").textContent);
const [sentence, map, head] = root.querySelectorAll("select");
const canvas = root.querySelector("canvas"), said = root.querySelector("output");
const help = said.textContent;
root.querySelector(".without").style.display = "none";
root.querySelector(".with").style.display = "";
const fill = (select, names) => {
  const old = select.selectedIndex;
  select.replaceChildren(...names.map((name) => new Option(name)));
  select.selectedIndex = Math.min(Math.max(old, 0), names.length - 1);
};
const chosen = () => all[sentence.selectedIndex].maps[map.selectedIndex];
let left = 0, top_ = 0, cell = 0;
const draw = () => {
  const one = chosen(), weights = one.weights[head.selectedIndex], pen = canvas.getContext("2d");
  const widest = (texts) => Math.max(...texts.map((text) => pen.measureText(text).width));
  pen.font = "12px sans-serif";
  left = widest(one.queries) + 10; top_ = widest(one.keys) + 10;
  cell = Math.max(13, Math.min(26, 640 / one.keys.length));
  canvas.width = left + cell * one.keys.length + 60; canvas.height = top_ + cell * weights.length;
  pen.fillStyle = "white"; pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.font = "12px sans-serif"; pen.textBaseline = "middle"; pen.fillStyle = "#222";
  one.queries.forEach((text, i) => pen.fillText(text, 2, top_ + cell * (i + 0.5)));
  one.keys.forEach((text, j) => {
    pen.save(); pen.translate(left + cell * (j + 0.5), top_ - 4); pen.rotate(-Math.PI / 2);
    pen.fillText(text, 0, 0); pen.restore();
  });
  weights.forEach((row, i) => row.forEach((weight, j) => {
    const part = weight / 100, mix = (dark) => Math.round(255 + part * (dark - 255));
    pen.fillStyle = `rgb(${mix(8)}, ${mix(48)}, ${mix(107)})`;
    pen.fillRect(left + cell * j, top_ + cell * i, cell - 1, cell - 1);
  }));
};
const heads = () => {
  const last = chosen().weights.length - 1;
  fill(head, chosen().weights.map((_, number) => number < last ? String(number) : "mean"));
  draw();
};
canvas.addEventListener("mousemove", (event) => {
  const one = chosen(), j = Math.floor((event.offsetX - left) / cell);
  const i = Math.floor((event.offsetY - top_) / cell);
  const row = (one.weights[head.selectedIndex] || [])[i] || [];
  said.textContent = j in row ?
    `“${one.queries[i]}” looks at “${one.keys[j]}”: ${(row[j] / 100).toFixed(2)}` : help;
});
fill(sentence, all.map((one) => one.title));
fill(map, all[0].maps.map((one) => one.name));
sentence.onchange = map.onchange = heads; head.onchange = draw;
heads();
})();</script></div>"""


def explorer(sentences: Sequence[Sentence]) -> HTML:
    """Return the page, to be the last value of a cell."""
    data = [
        {"title": one.title, "maps": [_map(one, name) for name in one.maps]} for one in sentences
    ]
    return HTML(PAGE.replace("DATA", json.dumps(data, ensure_ascii=False).replace("</", "<\\/")))


def _map(sentence: Sentence, name: str) -> dict[str, Any]:
    """One map in hundredths, with the mean of its heads after them."""
    weights = sentence.maps[name]  # (H, T_q, T_k)
    queries, keys = sentence.labels[name]
    both = [*weights, weights.mean(dim=0)]
    shown = [(100 * head).round().int().tolist() for head in both]
    return {"name": name, "queries": list(queries), "keys": list(keys), "weights": shown}
