// Tables that are sorted by clicking a heading, and shown one page at a time.

/**
 * columns: {label, value(row) to sort by, text(row) or cell(row) to show, number: true if right-aligned, hint}
 * options: {caption, sort: column number, descending, page: rows shown at first, chosen(row)}
 * Returns {element, setRows(rows), refresh()}.
 */
function sortedTable(columns, rows, options) {
  let sort = options.sort === undefined ? -1 : options.sort, descending = options.descending === true;
  const pageSize = options.page || 100;
  let shown = pageSize;
  const body = h('tbody'), more = h('div', {class: 'controls'});
  const headings = columns.map((column, i) => h('th', {scope: 'col', class: column.number ? 'number' : null, title: column.hint},
    h('button', {type: 'button', on: {click: () => sortBy(i)}}, column.label)));

  function compare(a, b) {
    const x = columns[sort].value(a), y = columns[sort].value(b);
    return typeof x === 'string' ? x.localeCompare(y, 'en', {numeric: true}) : (x || 0) - (y || 0);
  }
  function ordered() {
    if (sort < 0) return rows;
    const list = [...rows].sort(compare);
    return descending ? list.reverse() : list;
  }
  function render() {
    headings.forEach((heading, i) => {
      if (i === sort) heading.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
      else heading.removeAttribute('aria-sort');
    });
    const list = ordered();
    body.replaceChildren(...list.slice(0, shown).map((row) => h('tr', {class: options.chosen && options.chosen(row) ? 'chosen' : null},
      columns.map((column) => h('td', {class: column.number ? 'number' : column.tight ? 'tight' : null},
        column.cell ? column.cell(row) : String(column.text(row)))))));
    more.replaceChildren();
    if (list.length > shown) {
      more.append(h('span', {class: 'muted'}, `${countText(shown)} of ${countText(list.length)} shown`),
        h('button', {type: 'button', on: {click: () => { shown += 5 * pageSize; render(); }}}, 'Show more'));
    }
    if (!list.length) body.append(h('tr', {}, h('td', {colspan: columns.length, class: 'muted'}, 'none')));
  }
  function sortBy(column) {
    // Numbers are sorted in descending order first.
    descending = sort === column ? !descending : columns[column].number === true;
    sort = column;
    render();
  }
  const table = h('table', {}, options.caption ? h('caption', {}, options.caption) : null,
    h('thead', {}, h('tr', {}, headings)), body);
  render();
  return {
    element: h('div', {}, h('div', {class: 'scroll', role: 'region', tabindex: '0', 'aria-label': options.caption || 'table'}, table), more),
    setRows(next) {
      rows = next;
      shown = pageSize;
      render();
    },
    refresh: render,
  };
}

// A text field that filters the rows to those whose text contains every word.
function filterField(label, textOf, rows, apply) {
  const count = h('span', {class: 'count', role: 'status'});
  const field = h('input', {type: 'search', placeholder: 'filter', 'aria-label': label, on: {input: update}});
  function update() {
    const words = field.value.toLowerCase().split(/\s+/).filter((word) => word);
    const all = rows();
    const kept = words.length ? all.filter((row) => {
      const text = textOf(row).toLowerCase();
      return words.every((word) => text.includes(word));
    }) : all;
    count.textContent = kept.length === all.length ? countText(all.length) : `${countText(kept.length)} of ${countText(all.length)}`;
    apply(kept);
  }
  return {field, count, update};
}

// Horizontal bars: [{label, value, text, parts: [{value, color, title}]}].
function barLines(lines) {
  const most = Math.max(...lines.map((line) => line.value), 1e-300);
  return h('div', {class: 'lines'}, lines.map((line) => h('div', {class: 'line'},
    h('span', {class: line.most ? 'most' : null}, line.label),
    h('span', {class: 'track', 'aria-hidden': 'true'}, (line.parts || [{value: line.value, color: 'blue'}]).map((part) =>
      h('i', {class: part.color, title: part.title, style: {width: `${100 * part.value / most}%`}}))),
    h('span', {class: line.most ? 'value most' : 'value'}, line.text),
  )));
}
