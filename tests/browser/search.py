"""What readers find: the first hits of the site's own search, and how many clicks a page is away from the first page."""
import json
import pathlib
import posixpath
import re

QUESTIONS = json.loads((pathlib.Path(__file__).parent / "questions.json").read_text(encoding="utf-8"))

# The messages are those of the theme's worker: 0 sets it up, 1 says that it is ready, 2 is a query, and 3 its result.
ASK = """(async (queries) => {
  const config = JSON.parse(document.querySelector("#__config").textContent);
  const worker = new Worker(new URL(config.search, new URL(config.base + "/", location)));
  const answer = (type) => new Promise((done) => {
    const listener = (event) => { if (event.data.type === type) { worker.removeEventListener("message", listener); done(event.data.data); } };
    worker.addEventListener("message", listener);
  });
  const index = await (await fetch("search/search_index.json")).json();
  let ready = answer(1);
  worker.postMessage({type: 0, data: {...index, options: {suggest: true}}});
  await ready;
  const found = {};
  for (const query of queries) {
    const result = answer(3);
    worker.postMessage({type: 2, data: query});
    found[query] = (await result).items.map((group) => group[0].location.replace(/#.*/, ""));
  }
  worker.terminate();
  return found;
})"""


def first_hits(page, queries):
    """The pages that the site's search finds for each query, best first. `page` shows a page at the root of the site, from a server."""
    return page.run(f"{ASK}({json.dumps(list(queries))})", limit=300)  # a busy machine reads the index for long


def clicks(folder, first="index.html"):
    """How many links each page of the site is away from the first one."""
    away, at = {first: 0}, [first]
    for name in at:
        text = (folder / name).read_text(encoding="utf-8")
        for target in re.findall(r'href="?([^"\s>#]+)', text):
            there = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
            if there.endswith(".html") and there not in away and (folder / there).is_file():
                away[there] = away[name] + 1
                at.append(there)
    return away
