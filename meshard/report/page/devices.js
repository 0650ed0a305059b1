// The devices at their physical positions, colored by a mesh axis, and the current device.

const mesh = report.mesh === null ? null : report.meshes[report.mesh];
const deviceCount = mesh ? mesh.device_ids.length : 1;
const kMostDrawn = 8192;

// The index along every axis of a mesh; the last axis varies fastest.
function coordinateOf(of, position) {
  const coordinate = new Array(of.axes.length);
  for (let i = of.axes.length - 1; i >= 0; --i) {
    coordinate[i] = position % of.axes[i].size;
    position = Math.floor(position / of.axes[i].size);
  }
  return coordinate;
}

// The hue encodes the index of a device along the first axis, the lightness the indices along the others.
const deviceShade = (() => {
  const first = mesh ? mesh.axes.findIndex((axis) => axis.size > 1) : -1;
  if (first < 0) return () => shade(0.68, 0.7);
  const inner = mesh.axes.slice(first + 1).reduce((product, axis) => product * axis.size, 1);
  const outer = mesh.axes[first].size, shades = new Map();
  return (position) => {
    if (!shades.has(position)) {
      const rest = inner > 1 ? (position % inner) / (inner - 1) : 0.35;
      shades.set(position, shade((Math.floor(position / inner) % outer) / outer + 0.02, 0.84 - 0.36 * rest));
    }
    return shades.get(position);
  };
})();
const axisShade = (index, size) => shade(index / Math.max(size, 2) + 0.02, index % 2 ? 0.6 : 0.76);

// --- the current device: a position of the mesh, shared by all pictures ---

const looking = {position: 0, listeners: []};
function lookAt(position) {
  if (position === looking.position || position < 0 || position >= deviceCount) return;
  looking.position = position;
  for (const listener of looking.listeners) listener(position);
}

// Makes SVGs in a box respond to the pointer and the arrow keys. Cells have data-position.
function followDevices(box, label) {
  fill(box, {tabindex: '0', role: 'application', 'aria-label': label, on: {
    pointerover: (event) => {
      const position = event.target.getAttribute && event.target.getAttribute('data-position');
      if (position !== null && position !== undefined) lookAt(Number(position));
    },
    keydown: (event) => {
      const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
      if (step) lookAt(looking.position + step);
      else if (event.key === 'Home') lookAt(0);
      else if (event.key === 'End') lookAt(deviceCount - 1);
      else return;
      event.preventDefault();
    },
  }}, []);
  return box;
}

// --- places ---

// [{title, cells: [{device, x, y, w, h}], width, height, wrapX, wrapY}]
function deviceBoards() {
  const positionOf = new Map((mesh ? mesh.device_ids : [0]).map((id, position) => [id, position]));
  if (!report.topology) return [gridBoard('', (mesh ? mesh.device_ids : [0]).map((id, position) => ({id, position, process: null})))];
  const slices = new Map();
  for (const device of report.topology.devices) {
    const key = device.coords.length ? device.slice : `${device.slice}/${device.process}`;
    if (!slices.has(key)) slices.set(key, []);
    slices.get(key).push({...device, position: positionOf.has(device.id) ? positionOf.get(device.id) : null});
  }
  const boards = [];
  for (const devices of slices.values()) {
    if (!devices[0].coords.length) boards.push(gridBoard(`node ${devices[0].process}`, devices));
    else boards.push(...torusBoards(devices, slices.size));
  }
  return boards;
}

function gridBoard(title, devices) {
  let across = Math.min(devices.length, 8);
  if (!report.topology && mesh && mesh.axes.length) across = Math.min(mesh.axes[mesh.axes.length - 1].size, 64);
  else if (devices.length <= 8) across = Math.min(devices.length, 4);
  const size = across > 20 ? 18 : 34;
  return {title, size, wrap: [false, false], cells: devices.map((device, i) =>
    ({device, x: (i % across) * size, y: Math.floor(i / across) * size, w: size, h: size})),
  width: across * size, height: Math.ceil(devices.length / across) * size, columns: across};
}

// One board for each z of a slice; x increases to the right, y downward.
function torusBoards(devices, slices) {
  const extent = (d) => devices.reduce((most, device) => Math.max(most, (device.coords[d] || 0) + 1), 1);
  const [width, height, depth] = [extent(0), extent(1), extent(2)];
  const cores = devices.reduce((most, device) => Math.max(most, device.core + 1), 1);
  const boardsAcross = Math.min(slices * depth, 2);
  const size = Math.max(11, Math.min(40, Math.floor((boardsAcross > 1 ? 330 : 560) / Math.max(width, height))));
  const wrap = report.topology.wrap || [];
  const boards = [];
  for (let z = 0; z < depth; ++z) {
    const here = devices.filter((device) => (device.coords[2] || 0) === z);
    if (!here.length) continue;
    const title = [devices[0].slice !== null ? `slice ${devices[0].slice}` : '', depth > 1 ? `z = ${z}` : ''].filter((t) => t).join(', ');
    boards.push({title, size, wrap: [wrap[0] === true, wrap[1] === true], width: width * size, height: height * size, columns: width,
      cells: here.map((device) => ({device, x: device.coords[0] * size + device.core * size / cores, y: (device.coords[1] || 0) * size,
        w: size / cores, h: size}))});
  }
  return boards;
}

// Lines between cells of different hosts.
function hostLines(board) {
  const at = new Map(board.cells.map((cell) => [`${Math.round(cell.x)},${Math.round(cell.y)}`, cell]));
  const lines = [];
  const differs = (a, b) => b !== undefined && a.device.process !== b.device.process;
  for (const cell of board.cells) {
    if (cell.device.process === null) return '';
    const right = at.get(`${Math.round(cell.x + cell.w)},${Math.round(cell.y)}`), below = at.get(`${Math.round(cell.x)},${Math.round(cell.y + cell.h)}`);
    if (differs(cell, right)) lines.push(`M${cell.x + cell.w} ${cell.y}v${cell.h}`);
    if (differs(cell, below)) lines.push(`M${cell.x} ${cell.y + cell.h}h${cell.w}`);
  }
  lines.push(`M0 0h${board.width}v${board.height}h${-board.width}z`);
  return lines.join('');
}

function wrapLines(board) {
  const lines = [], stub = 5;
  if (board.wrap[0]) for (let y = board.size / 2; y < board.height; y += board.size) lines.push(`M${-stub} ${y}h${stub}M${board.width} ${y}h${stub}`);
  if (board.wrap[1]) for (let x = board.size / 2; x < board.width; x += board.size) lines.push(`M${x} ${-stub}v${stub}M${x} ${board.height}v${stub}`);
  return lines.join('');
}

function deviceText(position) {
  if (!mesh) return 'one device';
  const coordinate = coordinateOf(mesh, position);
  return `device ${mesh.device_ids[position]} at position ${position}: ` + mesh.axes.map((axis, i) => `${axis.name}=${coordinate[i]}`).join(', ');
}

const placeText = (() => {
  const devices = new Map((report.topology ? report.topology.devices : []).map((device) => [device.id, device]));
  return (position) => {
    const device = mesh && devices.get(mesh.device_ids[position]);
    if (!device) return '';
    const parts = [];
    if (device.coords.length) parts.push(`chip (${device.coords.join(', ')})${device.core ? ` core ${device.core}` : ''}`);
    if (device.slice !== null && device.coords.length) parts.push(`slice ${device.slice}`);
    parts.push(device.coords.length ? `host ${device.process}` : `node ${device.process}`);
    return parts.join(', ');
  };
})();

function drawBoard(board, cellsOf) {
  const margin = 6;
  const drawn = board.cells.map((cell) => {
    const rect = s('rect', {class: 'cell', x: cell.x, y: cell.y, width: cell.w, height: cell.h,
      'data-position': cell.device.position === null ? null : cell.device.position});
    const id = String(cell.device.id), small = id.length * 6.7 > cell.w - 3;
    const text = id.length * (small ? 5.4 : 6.7) <= cell.w - 2 ? s('text', {x: cell.x + cell.w / 2, y: cell.y + cell.h / 2 + (small ? 3 : 4), 'text-anchor': 'middle',
      class: small ? 'small' : null}, id) : null;
    const entry = {device: cell.device, rect, text, cell};
    if (cell.device.position !== null) cellsOf.set(cell.device.position, entry);
    return entry;
  });
  const ring = s('rect', {class: 'ring', visibility: 'hidden'}), same = s('path', {class: 'same'});
  for (const entry of drawn) Object.assign(entry, {ring, same});
  const picture = s('svg', {width: board.width + 2 * margin, height: board.height + 2 * margin,
    viewBox: `${-margin} ${-margin} ${board.width + 2 * margin} ${board.height + 2 * margin}`, 'aria-hidden': 'true'},
  drawn.map((entry) => entry.rect), drawn.map((entry) => entry.text), s('path', {class: 'host', d: hostLines(board)}),
  s('path', {class: 'wrap', d: wrapLines(board)}), same, ring);
  return {drawn, figure: h('div', {class: 'panel'}, board.title && h('div', {class: 'title'}, board.title), picture)};
}

function paintDevices(drawn, by) {
  const axis = mesh ? mesh.axes.findIndex((each) => `axis ${each.name}` === by) : -1;
  for (const entry of drawn) {
    let tone = null;
    if (entry.device.position === null) tone = null;
    else if (axis >= 0) tone = axisShade(coordinateOf(mesh, entry.device.position)[axis], mesh.axes[axis].size);
    else tone = deviceShade(entry.device.position);
    entry.rect.classList.toggle('unused', tone === null);
    if (tone) entry.rect.setAttribute('fill', tone.fill);
    if (entry.text) entry.text.setAttribute('fill', tone ? tone.text : 'currentColor');
  }
}

// Device cells by position, for other pictures that mark devices in this one.
const deviceCells = new Map();

// Draws dashes around the devices that hold the same part as the current one.
function markSame(positions) {
  const lines = new Map();
  for (const entry of deviceCells.values()) lines.set(entry.same, '');
  for (const position of positions) {
    const entry = deviceCells.get(position);
    if (entry) lines.set(entry.same, lines.get(entry.same) + `M${entry.cell.x + 2} ${entry.cell.y + 2}h${entry.cell.w - 4}v${entry.cell.h - 4}h${4 - entry.cell.w}z`);
  }
  for (const [path, line] of lines) path.setAttribute('d', line);
}

function devicesSection() {
  if (!mesh && !report.topology) return null;
  let boards = deviceBoards(), left = 0, count = 0;
  boards = boards.filter((board) => {
    count += board.cells.length;
    if (count <= kMostDrawn) return true;
    left += board.cells.length;
    return false;
  });
  const drawn = [], figures = [];
  for (const board of boards) {
    const one = drawBoard(board, deviceCells);
    drawn.push(...one.drawn);
    figures.push(one.figure);
  }
  const choices = ['each device', ...(mesh ? mesh.axes.filter((axis) => axis.size > 1).map((axis) => `axis ${axis.name}`) : [])];
  const select = h('select', {id: 'color-by', on: {change: () => paintDevices(drawn, select.value)}}, choices.map((text) => h('option', {value: text}, text)));
  paintDevices(drawn, choices[0]);
  const details = h('div', {class: 'card', id: 'device-details', role: 'status'});
  let ringed = null;
  function show(position) {
    details.replaceChildren(h('p', {}, h('b', {}, deviceText(position))), h('p', {class: 'muted'}, placeText(position)));
    if (ringed) ringed.ring.setAttribute('visibility', 'hidden');
    ringed = deviceCells.get(position) || null;
    if (ringed) fill(ringed.ring, {x: ringed.cell.x, y: ringed.cell.y, width: ringed.cell.w, height: ringed.cell.h, visibility: 'visible'}, []);
  }
  looking.listeners.push(show);
  show(looking.position);
  const grid = report.topology && report.topology.devices[0].coords.length ? report.topology : null;
  const closed = grid && grid.wrap ? ['x', 'y', 'z'].filter((name, i) => grid.wrap[i]).join(', ') : null;
  const said = grid ? `x runs to the right, y down${grid.devices.some((device) => device.coords[2]) ? ', one board for each z' : ''}. ` +
    (closed === null ? '' : closed ? `The torus closes in ${closed} (stubs at the edges). ` : 'No direction forms a ring. ') : '';
  const hosts = report.topology ? 'Lines divide hosts. ' : 'Devices in mesh order. ';
  return section('devices', 'Devices', h('p', {class: 'hint'}, `${said}${hosts}Point at a device, or move with the arrow keys; dashes mark the devices that hold the same part of the value chosen below.`),
    h('div', {class: 'controls'}, h('label', {}, 'color by', select)),
    h('div', {class: 'two'}, followDevices(h('div', {class: 'picture figure-row', id: 'device-map'}, figures), 'Map of the devices'), h('div', {class: 'sticky'}, details)),
    left > 0 && h('p', {class: 'muted'}, `${countText(left)} more devices are not drawn.`));
}
