// The module in program order: time increases to the right, loops are nested downward.

const kindColors = {compute: 'blue', collective: 'orange', copy: 'purple', loop: 'gray', other: 'green'};

/**
 * Where each entry begins and ends, in seconds of one run without overlap: the steps of a body appear once, with the
 * time of all their executions. Without times, every step has the same length.
 */
function timelinePlaces(entries) {
  const timed = entries.some((entry) => entry.seconds > 0);
  const start = new Float64Array(entries.length), end = new Float64Array(entries.length), open = [];
  const parent = new Int32Array(entries.length).fill(-1);
  let now = 0;
  const close = (depth) => {
    while (open.length && entries[open[open.length - 1]].depth >= depth) {
      const i = open.pop();
      end[i] = Math.max(now, end[i]);
    }
  };
  entries.forEach((entry, i) => {
    close(entry.depth);
    parent[i] = open.length ? open[open.length - 1] : -1;
    start[i] = now;
    const next = entries[i + 1];
    if (next && next.depth > entry.depth) {
      open.push(i);
    } else {
      now += timed ? (entry.seconds || 0) * entry.executions : 1;
      end[i] = now;
    }
  });
  close(0);
  return {start, end, parent, timed, total: now};
}

function timelineSection() {
  const entries = report.timeline;
  if (!entries.length) return null;
  const places = timelinePlaces(entries);
  const total = places.total || 1, rows = Math.min(8, entries.reduce((most, entry) => Math.max(most, entry.depth), 0) + 1), rowHeight = 30, scale = 18;
  const canvas = h('canvas', {id: 'timeline-canvas', tabindex: '0', role: 'application', 'aria-label': `Timeline of ${entries.length} steps; arrow keys move from step to step`,
    height: rows * rowHeight + scale});
  const details = h('div', {class: 'card', id: 'timeline-details', role: 'status'});
  let from = 0, to = total, selected = 0, waiting = false;
  const span = (i) => places.end[i] - places.start[i];
  const timeText = (value) => places.timed ? secondsText(value) : `step ${Math.round(value)}`;

  function draw() {
    waiting = false;
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
    if (!width) return;
    canvas.width = width * ratio;
    canvas.height = (rows * rowHeight + scale) * ratio;
    canvas.style.height = `${rows * rowHeight + scale}px`;
    const style = getComputedStyle(document.documentElement), named = (name) => style.getPropertyValue(`--${name}`).trim();
    const fills = {}, context = canvas.getContext('2d');
    for (const [kind, name] of Object.entries(kindColors)) fills[kind] = named(name);
    const text = named('text'), muted = named('muted'), onColor = named('on-color'), ground = named('ground');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, rows * rowHeight + scale);
    context.font = '12px system-ui, "DejaVu Sans", sans-serif';
    context.textBaseline = 'middle';
    const x = (time) => (time - from) / (to - from) * width;
    drawScale(context, width, muted);
    // Steps narrower than a pixel share one: the last pixel column that is filled in each row.
    const filled = new Array(rows).fill(-1);
    for (let i = 0; i < entries.length; ++i) {
      if (places.end[i] < from || places.start[i] > to) continue;
      const row = Math.min(entries[i].depth, rows - 1), a = x(places.start[i]), b = x(places.end[i]);
      if (b - a < 1 && Math.floor(b) <= filled[row]) continue;
      filled[row] = Math.floor(b);
      const left = Math.max(a, 0), right = Math.min(b, width), gap = b - a > 4 ? 1 : 0;
      context.fillStyle = fills[entries[i].kind] || muted;
      context.fillRect(left, scale + row * rowHeight + 1, Math.max(right - left - gap, 1), rowHeight - 2);
      if (right - left > 40) {
        context.save();
        context.beginPath();
        context.rect(left, scale + row * rowHeight, right - left - 6, rowHeight);
        context.clip();
        context.fillStyle = onColor;
        context.fillText(stepLabel(entries[i]), left + 6, scale + row * rowHeight + rowHeight / 2);
        context.restore();
      }
    }
    const a = Math.max(x(places.start[selected]), -4), b = Math.min(x(places.end[selected]), width + 4);
    if (b >= 0 && a <= width) {
      const row = Math.min(entries[selected].depth, rows - 1);
      context.strokeStyle = ground;
      context.lineWidth = 4;
      context.strokeRect(a, scale + row * rowHeight + 1, Math.max(b - a, 2), rowHeight - 2);
      context.strokeStyle = text;
      context.lineWidth = 2;
      context.strokeRect(a, scale + row * rowHeight + 1, Math.max(b - a, 2), rowHeight - 2);
    }
  }
  function drawScale(context, width, ink) {
    context.fillStyle = ink;
    const rough = (to - from) / Math.max(2, width / 110), power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough);
    for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
      const at = (time - from) / (to - from) * width;
      context.fillRect(at, 0, 1, scale - 3);
      context.fillText(timeText(Math.abs(time) < step / 1e6 ? 0 : time), at + 4, scale / 2 - 1);
    }
  }
  const stepLabel = (entry) => entry.instruction + (entry.executions > 1 ? ` × ${countText(entry.executions)}` : '');
  function redraw() {
    if (!waiting) requestAnimationFrame(draw);
    waiting = true;
  }
  function view(a, b) {
    const least = total * 1e-9, size = Math.min(Math.max(b - a, least), total);
    from = Math.min(Math.max(a, 0), total - size);
    to = from + size;
    redraw();
  }
  function zoom(factor, about) {
    view(about - (about - from) * factor, about + (to - about) * factor);
  }
  const middle = () => {
    const center = (places.start[selected] + places.end[selected]) / 2;
    return center >= from && center <= to ? center : (from + to) / 2;
  };
  function select(i, reveal) {
    selected = i;
    const entry = entries[i], line = (label, text) => text && h('p', {}, h('span', {class: 'muted'}, `${label} `), text);
    const times = entry.executions > 1 ? `${secondsText(entry.seconds)} × ${countText(entry.executions)} = ${secondsText(entry.seconds * entry.executions)}` : secondsText(entry.seconds);
    const work = [entry.flops ? `${shortText(entry.flops)}flop` : '', entry.memory_bytes ? `${byteText(entry.memory_bytes)} of memory` : '', entry.link_bytes ? `${byteText(entry.link_bytes)} over links` : '',
      entry.host_bytes ? `${byteText(entry.host_bytes)} from and to the host` : ''].filter((t) => t).join(', ');
    details.replaceChildren(h('p', {}, h('b', {}, entry.instruction), ` ${entry.kind}${entry.opcode === entry.kind ? '' : `, ${entry.opcode}`}`, h('span', {class: 'muted'}, `, step ${countText(i + 1)} of ${countText(entries.length)}`)),
      ...[places.timed && line('time', span(i) > 0 && entry.seconds === 0 ? `${secondsText(span(i))} in total` : times), entry.measured_seconds !== null && line('measured', secondsText(entry.measured_seconds)), line('each time', work),
      entry.hidden_seconds + entry.exposed_seconds > 0 && line('transfer', `${secondsText(entry.exposed_seconds)} exposed, ${secondsText(entry.hidden_seconds)} hidden`), line('source', entry.place)].filter((child) => child));
    if (reveal && (places.start[i] < from || places.end[i] > to)) {
      const size = Math.max(to - from, span(i) * 1.2), center = (places.start[i] + places.end[i]) / 2;
      view(center - size / 2, center + size / 2);
    }
    redraw();
  }
  function at(event) {
    const box = canvas.getBoundingClientRect(), time = from + (event.clientX - box.left) / box.width * (to - from);
    const row = Math.floor((event.clientY - box.top - scale) / rowHeight);
    let found = -1, near = 3 / box.width * (to - from);
    for (let i = 0; i < entries.length; ++i) {
      if (Math.min(entries[i].depth, rows - 1) !== row) continue;
      const away = Math.max(places.start[i] - time, time - places.end[i], 0);
      if (away < near) { found = i; near = away; }
      if (away === 0 && span(i) > 0) break;
    }
    return {found, time};
  }
  let drag = null;
  fill(canvas, {on: {
    pointerdown: (event) => { drag = {x: event.clientX, from, to}; canvas.setPointerCapture(event.pointerId); },
    pointerup: () => { drag = null; },
    pointermove: (event) => {
      if (drag) {
        const by = (event.clientX - drag.x) / canvas.clientWidth * (drag.to - drag.from);
        view(drag.from - by, drag.to - by);
        return;
      }
      const {found} = at(event);
      if (found >= 0 && found !== selected) select(found);
    },
    dblclick: (event) => zoom(0.4, at(event).time),
    keydown: (event) => {
      const moves = {ArrowRight: () => select(Math.min(selected + 1, entries.length - 1), true), ArrowLeft: () => select(Math.max(selected - 1, 0), true),
        ArrowUp: () => places.parent[selected] >= 0 && select(places.parent[selected], true),
        ArrowDown: () => entries[selected + 1] && entries[selected + 1].depth > entries[selected].depth && select(selected + 1, true),
        '+': () => zoom(0.5, middle()), '=': () => zoom(0.5, middle()), '-': () => zoom(2, middle()), Home: () => select(0, true), End: () => select(entries.length - 1, true), '0': () => view(0, total)};
      if (!moves[event.key] || event.ctrlKey || event.metaKey) return;
      moves[event.key]();
      event.preventDefault();
    }}}, []);
  canvas.addEventListener('wheel', (event) => {
    if (event.ctrlKey || event.metaKey) zoom(event.deltaY > 0 ? 1.25 : 0.8, at(event).time);
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) view(from + (event.deltaX || event.deltaY) / canvas.clientWidth * (to - from), to + (event.deltaX || event.deltaY) / canvas.clientWidth * (to - from));
    else return;
    event.preventDefault();
  }, {passive: false});
  new ResizeObserver(redraw).observe(canvas);
  themeListeners.push(redraw);

  const sums = {};
  entries.forEach((entry, i) => {
    const leaf = !(entries[i + 1] && entries[i + 1].depth > entry.depth);
    if (leaf) sums[entry.kind] = (sums[entry.kind] || 0) + span(i);
  });
  const kinds = Object.entries(sums).sort((a, b) => b[1] - a[1]);
  const button = (text, label, action) => h('button', {type: 'button', title: label, 'aria-label': label, on: {click: action}}, text);
  const leaves = entries.map((entry, i) => ({entry, i, all: span(i)})).filter(({entry, i}) => !(entries[i + 1] && entries[i + 1].depth > entry.depth));
  const table = sortedTable([
    {label: 'Step', number: true, value: (row) => row.i, text: (row) => countText(row.i + 1)},
    {label: 'Instruction', value: (row) => row.entry.instruction, cell: (row) => h('button', {type: 'button', class: 'link', on: {click: () => { select(row.i, true); canvas.scrollIntoView({block: 'center'}); }}}, row.entry.instruction)},
    {label: 'Kind', value: (row) => row.entry.kind, text: (row) => row.entry.kind === row.entry.opcode ? row.entry.kind : `${row.entry.kind}, ${row.entry.opcode}`},
    {label: 'Total', number: true, value: (row) => row.entry.seconds * row.entry.executions, text: (row) => secondsText(row.entry.seconds * row.entry.executions)},
    {label: 'Runs', number: true, value: (row) => row.entry.executions, text: (row) => countText(row.entry.executions)},
    {label: 'Flop', number: true, value: (row) => row.entry.flops, text: (row) => row.entry.flops ? shortText(row.entry.flops) : ''},
    {label: 'Memory', number: true, value: (row) => row.entry.memory_bytes, text: (row) => row.entry.memory_bytes ? byteText(row.entry.memory_bytes) : ''},
    {label: 'Links', number: true, value: (row) => row.entry.link_bytes, text: (row) => row.entry.link_bytes ? byteText(row.entry.link_bytes) : ''},
    {label: 'Source', value: (row) => row.entry.place, text: (row) => row.entry.place},
  ], leaves, {sort: places.timed ? 3 : 0, descending: places.timed, page: 12, caption: 'Steps; choose one to see it in the timeline'});
  const filter = filterField('Filter the steps', (row) => `${row.entry.instruction} ${row.entry.opcode} ${row.entry.kind} ${row.entry.place}`, () => leaves, table.setRows);
  filter.update();
  select(0);
  return section('timeline', 'Timeline',
    h('p', {class: 'hint'}, places.timed ? 'The module in program order. Each step has the length of its own estimated time, and nothing overlaps. The body of a loop appears once, below the loop, with the total time of its runs.'
      : 'The module in program order. Without hardware figures, all steps have the same length.'),
    h('div', {class: 'controls'}, button('+', 'Zoom in', () => zoom(0.5, middle())), button('−', 'Zoom out', () => zoom(2, middle())), button('All', 'Show all', () => view(0, total)),
      h('span', {class: 'hint'}, 'drag, Ctrl + wheel, double click; keys: arrows, +, −, 0')),
    canvas, h('ul', {class: 'legend'}, kinds.map(([kind, sum]) => h('li', {}, h('i', {class: kindColors[kind]}), places.timed ? `${kind} ${secondsText(sum)}` : kind)),
      entries.some((entry) => entry.kind === 'loop') && !sums.loop && h('li', {}, h('i', {class: 'gray'}), 'loop')), details,
    h('div', {class: 'controls'}, filter.field, filter.count), table.element);
}
