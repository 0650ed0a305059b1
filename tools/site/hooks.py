"""Called by mkdocs (tools/site/mkdocs.yml): adds the pages outside docs/, the long lists of the navigation, and copies of files."""

import json
import logging
import pathlib
import sys

from mkdocs.structure.files import File

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
import pages  # noqa: E402

LOG = logging.getLogger("mkdocs.hooks")  # --strict counts its warnings
SECTIONS = {"Op reference": "reference", "API index": "api", "Decisions": "decisions"}
STYLE = {"site.css": "assets/site.css", "worker_of_file.js": "assets/worker_of_file.js"}


def on_config(config):
    """A navigation entry with an empty list becomes the list of the pages of its folder."""
    for entry in config.nav:
        for name in entry:
            if name in SECTIONS:
                entry[name] = pages.section(SECTIONS[name], ROOT)
    return config


def sources(files):
    """Path in the repository of each page of the site."""
    outside = {page: path for path, page in pages.PAGES_OUTSIDE.items()}
    return {file.src_uri: outside.get(file.src_uri, f"docs/{file.src_uri}") for file in files.documentation_pages()}


def on_files(files, config):
    for path, page in pages.PAGES_OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text(encoding="utf-8")))
    for name, page in STYLE.items():
        files.append(File.generated(config, page, abs_src_path=str(HERE / name)))
    copies = set()
    for page, source in sources(files).items():
        pages.convert((ROOT / source).read_text(encoding="utf-8"), source, page, copies)
    for path in sorted(copies):
        there = path.removeprefix("docs/") if path.startswith("docs/") else pages.copy_of(path)
        if not (ROOT / path).is_file():
            LOG.warning("a page links to %s, which is not a file", path)
        elif files.get_file_from_path(there) is None:
            files.append(File.generated(config, there, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown, page, config, files):
    source = sources(files)[page.file.src_uri]
    return pages.convert(markdown, source, page.file.src_uri, set())


def on_post_build(config):
    """The search index as a script too: a page that was opened from the disk cannot read other files."""
    folder = pathlib.Path(config.site_dir) / "search"
    text = (folder / "search_index.json").read_text(encoding="utf-8")
    (folder / "search_index.js").write_text(f"var __index = {json.dumps(json.loads(text), separators=(',', ':'))};\n", encoding="utf-8")
