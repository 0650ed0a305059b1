// How values are laid out on the devices: one picture for each sharding.

// [index along an axis or a sub-axis, its size] of a coordinate.
function partOf(of, axis, coordinate) {
  const name = typeof axis === 'string' ? axis : axis.axis;
  const at = of.axes.findIndex((each) => each.name === name);
  const size = of.axes[at].size;
  if (typeof axis === 'string') return [coordinate[at], size];
  const rest = size / (axis.pre_size * axis.size);
  return [Math.floor(coordinate[at] / rest) % axis.size, axis.size];
}

// {counts: tiles of each dimension, tile(position): index in each dimension or null, holders: positions by tile key, ids: device ids}
function tilesOf(sharding) {
  const of = report.meshes[sharding.mesh];
  const origin = of.axes.map(() => 0);
  const counts = sharding.dimensions.map((dimension) => dimension.axes.reduce((product, axis) => product * partOf(of, axis, origin)[1], 1));
  const tile = (position) => {
    const coordinate = coordinateOf(of, position);
    return sharding.dimensions.map((dimension) => dimension.axes.reduce((index, axis) => {
      const [part, size] = partOf(of, axis, coordinate);
      return index * size + part;
    }, 0));
  };
  // Positions are those of the program's mesh, even if the sharding has its own mesh.
  const own = of === mesh || !mesh;
  const there = own ? null : new Map(of.device_ids.map((id, position) => [id, position]));
  const holders = new Map();
  const tileAt = (position) => {
    const local = own ? position : there.get(mesh.device_ids[position]);
    return local === undefined ? null : tile(local);
  };
  for (let position = 0; position < (own ? of : mesh).device_ids.length; ++position) {
    const index = tileAt(position);
    if (!index) continue;
    const key = index.join(',');
    if (!holders.has(key)) holders.set(key, []);
    holders.get(key).push(position);
  }
  const ids = own ? of.device_ids : mesh.device_ids;
  return {counts, tile: tileAt, holders, ids};
}

const sizesOf = (type) => type.slice(type.indexOf('[') + 1, -1).split(',').filter((text) => text).map(Number);

// [start, stop) of a tile, as Sharding::slice in C++; the last tiles may be short or empty.
function sliceOf(size, tiles, index) {
  const part = Math.ceil(size / tiles);
  return [Math.min(size, index * part), Math.min(size, (index + 1) * part)];
}
const sliceText = ([start, stop]) => `${start}:${stop}`;

function dimensionTitle(sharding, d) {
  const axes = sharding.dimensions[d].axes;
  return `dimension ${d}${axes.length ? `: ${axesText(axes)}` : ''}`;
}

// Which dimensions are drawn downward and across, and which become panels.
function drawnDimensions(counts) {
  const split = counts.map((count, d) => d).filter((d) => counts[d] > 1);
  if (counts.length === 0) return {down: null, across: null, panels: []};
  if (counts.length === 1) return {down: null, across: 0, panels: []};
  if (split.length >= 2) return {down: split[split.length - 2], across: split[split.length - 1], panels: split.slice(0, -2)};
  if (split.length === 0) return {down: counts.length - 2, across: counts.length - 1, panels: []};
  const only = split[0];
  return only === counts.length - 1 ? {down: only - 1, across: only, panels: []} : {down: only, across: only + 1, panels: []};
}

const kMostTiles = 4096, kMostPanels = 64, kRunLength = 32;

/** Draws one grid; `at` has the tile index of the panel dimensions. Fills places: position -> its place in the grid. */
function drawGrid(sharding, tiles, dimensions, at, places, limits) {
  const {down, across} = dimensions;
  const rows = down === null ? 1 : tiles.counts[down], columns = across === null ? 1 : tiles.counts[across];
  // A long row of tiles is wrapped into lines, like text.
  const run = rows === 1 && columns > kRunLength ? 'across' : columns === 1 && rows > kRunLength ? 'down' : null;
  const total = rows * columns, perLine = run ? kRunLength : columns, lines = run ? Math.ceil(total / perLine) : rows;
  const w = Math.max(9, Math.min(Math.max(92, Math.floor(limits.width / 2 / perLine)), Math.floor(limits.width / perLine))), hgt = Math.max(9, Math.min(54, Math.floor(limits.height / lines)));
  const shapes = [], texts = [], edges = [];
  for (let i = 0; i < total; ++i) {
    const index = [...at];
    if (down !== null) index[down] = run === 'down' ? i : Math.floor(i / columns);
    if (across !== null) index[across] = run === 'down' ? 0 : i % columns;
    const holders = tiles.holders.get(index.join(',')) || [];
    const x = (i % perLine) * w, y = Math.floor(i / perLine) * hgt;
    // A part on one device fills its cell. Copies are chips inside the cell of their part, one for each device.
    const chips = chipPlaces(holders.length, {x, y, w, h: hgt});
    if (holders.length > 1) shapes.push(s('rect', {class: 'shared', x, y, width: w, height: hgt}));
    chips.forEach((chip, k) => shapes.push(s('rect', {x: chip.x, y: chip.y, width: chip.w, height: chip.h, rx: holders.length > 1 ? 3 : 0,
      fill: deviceShade(holders[k]).fill, 'data-position': holders[k]})));
    edges.push(`M${x} ${y}h${w}v${hgt}h${-w}z`);
    holders.forEach((position, k) => places.set(position, chips[Math.min(k, chips.length - 1)]));
    texts.push(labels(holders, tiles.ids, chips, {x, y, w, h: hgt}));
  }
  const ring = s('rect', {class: 'ring', visibility: 'hidden'});
  for (const [position, place] of places) if (!place.ring) places.set(position, {...place, ring});
  const width = perLine * w, height = lines * hgt;
  const acrossLabel = across === null ? 'a scalar' : run === 'down' ? `${dimensionTitle(sharding, down)}, read line by line` :
    `${dimensionTitle(sharding, across)}${run ? ', read line by line' : ''}`;
  const downLabel = down === null || run === 'down' ? '' : dimensionTitle(sharding, down);
  const top = 19, left = downLabel ? 19 : 3;
  return s('svg', {width: Math.max(width + left + 4, 7.2 * acrossLabel.length + left), height: Math.max(height + top + 4, downLabel ? 7.2 * downLabel.length + top : 0), 'aria-hidden': 'true'},
    s('text', {class: 'axis-label', x: left, y: 12}, `${acrossLabel} →`),
    downLabel && s('text', {class: 'axis-label', transform: `translate(5 ${top}) rotate(90)`, x: 0, y: 0}, `${downLabel} →`),
    s('g', {transform: `translate(${left} ${top})`}, shapes, s('path', {class: tiles.holders.size < tiles.ids.length ? 'tile-edge' : 'edge', d: edges.join('')}), texts, ring));
}

/** The places of n copies in a cell: chips in rows; fewer than n if they would be smaller than a few pixels. */
function chipPlaces(n, {x, y, w, h: height}) {
  if (n <= 1) return n ? [{x, y, w, h: height}] : [];
  const margin = w >= 40 && height >= 24 ? 4 : 1, gap = margin > 1 ? 3 : 1, least = 7;
  const inner = {w: w - 2 * margin, h: height - 2 * margin};
  const mostColumns = Math.max(1, Math.floor((inner.w + gap) / (least + gap))), mostRows = Math.max(1, Math.floor((inner.h + gap) / (least + gap)));
  const shown = Math.min(n, mostColumns * mostRows);
  // Chips that are about twice as wide as high have room for their number.
  const wanted = Math.min(mostColumns, Math.max(Math.ceil(shown / mostRows), Math.round(Math.sqrt(shown * inner.w / (2 * inner.h))), 1));
  const rows = Math.ceil(shown / wanted), columns = Math.ceil(shown / rows), chip = {w: (inner.w - (columns - 1) * gap) / columns, h: (inner.h - (rows - 1) * gap) / rows};
  return Array.from({length: shown}, (_, k) => ({x: x + margin + (k % columns) * (chip.w + gap), y: y + margin + Math.floor(k / columns) * (chip.h + gap), ...chip}));
}

// The ids of the devices that hold a tile: one on each chip, or the first one and the number of others, or none.
function labels(holders, ids, chips, {x, y, w, h: height}) {
  const text = (at, content, attributes) => s('text', {x: at.x + at.w / 2, y: at.y + at.h / 2 + 4, 'text-anchor': 'middle', ...attributes}, content);
  if (!chips.length) return null;
  const {w: width, h: high} = chips[0], longest = Math.max(...holders.map((position) => String(ids[position]).length), 1);
  const small = longest * 6.7 > width - 3 || high < 13;
  if (holders.length === chips.length && high >= 10 && longest * (small ? 5.4 : 6.7) <= width - 1) {
    return holders.map((position, k) => text(chips[k], String(ids[position]), {fill: deviceShade(position).text, class: small ? 'small' : null}));
  }
  const some = holders.length > 1 ? `${ids[holders[0]]} +${holders.length - 1}` : '';
  return some && height >= 13 && some.length * 6.7 <= w - 4 ? text({x, y, w, h: height}, some, {class: 'halo'}) : null;
}

/** The picture of a sharding: a grid, or nested panels of grids. */
function shardingPicture(sharding, sizes) {
  const tiles = tilesOf(sharding), dimensions = drawnDimensions(tiles.counts), places = new Map();
  const total = tiles.counts.reduce((product, count) => product * count, 1);
  if (total > kMostTiles) return {tiles, places, element: h('p', {class: 'muted'}, `${countText(total)} tiles are too many to draw.`)};
  let panels = 0, left = 0;
  const many = dimensions.panels.length > 0;
  const limits = many ? {width: 190, height: 130} : {width: 560, height: 400};
  function draw(which, at) {
    if (which === dimensions.panels.length) {
      if (++panels > kMostPanels) { ++left; return null; }
      return drawGrid(sharding, tiles, dimensions, at, places, limits);
    }
    const d = dimensions.panels[which];
    const inner = [];
    for (let i = 0; i < tiles.counts[d]; ++i) {
      const next = [...at];
      next[d] = i;
      const drawn = draw(which + 1, next);
      if (drawn) inner.push(h('div', {class: 'panel'}, h('div', {class: 'title'}, `${dimensionTitle(sharding, d)} = ${i} [${sliceText(sliceOf(sizes[d], tiles.counts[d], i))}]`), drawn));
    }
    return h('div', {class: which ? 'figure-row' : 'figure-row nest'}, inner);
  }
  const element = h('div', {}, draw(0, tiles.counts.map(() => 0)), left > 0 && h('p', {class: 'muted'}, `${countText(left)} more panels are not drawn.`));
  return {tiles, places, element};
}

// What the current device holds of a value.
function holdingText(value, tiles, position) {
  const sizes = sizesOf(value.type), index = tiles.tile(position);
  if (!index) return [h('p', {}, h('b', {}, deviceText(position))), h('p', {id: 'slice'}, 'holds no part of it')];
  const slices = sizes.map((size, d) => d < index.length ? sliceOf(size, tiles.counts[d], index[d]) : [0, size]);
  const holders = tiles.holders.get(index.join(','));
  const copy = holders.indexOf(position);
  const empty = slices.some(([start, stop]) => start === stop);
  const others = holders.filter((each) => each !== position).map((each) => tiles.ids[each]);
  return [
    h('p', {}, h('b', {}, deviceText(position))),
    h('p', {id: 'slice'}, empty ? 'holds nothing but padding' : slices.length ? `holds [${slices.map(sliceText).join(', ')}] of ${value.type}` : `holds ${value.type}`,
      `, ${byteText(value.shard_bytes)}`),
    h('p', {class: 'muted'}, holders.length > 1 ? `copy ${copy} of ${holders.length}; the same on device${others.length > 1 ? 's' : ''} ` +
      `${others.slice(0, 12).join(', ')}${others.length > 12 ? ` and ${countText(others.length - 12)} more` : ''}` : 'the only copy'),
  ];
}

// --- values by sharding ---

function shardingGroups() {
  const groups = new Map();
  const add = (list, role) => list.forEach((value, i) => {
    const sharding = value.sharding;
    const key = sharding ? JSON.stringify([sharding.mesh, sharding.spec, sharding.replicated, sharding.unreduced, sharding.unreduced_kind]) : '';
    if (!groups.has(key)) groups.set(key, {sharding, values: []});
    const captured = role === 'argument' && i >= list.length - report.num_captured;
    groups.get(key).values.push({...value, role: captured ? 'captured' : role, number: i, label: value.name || `${role} ${i}`});
  });
  add(report.arguments, 'argument');
  add(report.results, 'result');
  add(report.intermediates, 'inside');
  return [...groups.values()];
}

function specText(sharding) {
  if (!sharding) return 'not sharded';
  return sharding.spec + (sharding.unreduced.length ? ` unreduced ${sharding.unreduced_kind ?? ''}${axesText(sharding.unreduced)}` : '') +
    (sharding.replicated.length ? ` replicated ${axesText(sharding.replicated)}` : '');
}

function valuesSection() {
  const groups = shardingGroups();
  if (!groups.length) return null;
  const bytesOf = (group) => group.values.reduce((sum, value) => sum + (value.role === 'inside' ? 0 : value.shard_bytes), 0);
  const copies = (group) => !group.sharding ? 1 : report.meshes[group.sharding.mesh].device_ids.length /
    tilesOf({...group.sharding}).counts.reduce((product, count) => product * count, 1);
  for (const group of groups) {
    group.bytes = bytesOf(group);
    group.copies = copies(group);
  }
  const start = groups.reduce((best, group) => group.sharding && (!best || group.bytes > best.bytes) ? group : best, null) || groups[0];
  let chosen = start, value = null, drawn = null;
  const pictureBox = h('div', {class: 'picture', id: 'sharding-picture'}), details = h('div', {class: 'card', id: 'sharding-details', role: 'status'});
  const title = h('h3', {id: 'sharding-title'}), inside = h('div', {});
  followDevices(pictureBox, 'Picture of the sharding');

  const table = sortedTable([
    {label: 'Sharding', value: (group) => specText(group.sharding), cell: (group) => h('button', {type: 'button', class: 'link', on: {click: () => choose(group)}}, specText(group.sharding))},
    {label: 'Values', number: true, value: (group) => group.values.length, text: (group) => countText(group.values.length)},
    {label: 'Per device', number: true, hint: 'arguments and results, on one device', value: (group) => group.bytes, text: (group) => group.values.some((each) => each.role !== 'inside') ? byteText(group.bytes) : ''},
    {label: 'Copies', number: true, hint: 'devices that hold the same part', value: (group) => group.copies, text: (group) => countText(group.copies)},
    {label: 'Such as', value: (group) => group.values[0].label, text: (group) => group.values[0].label},
  ], groups, {sort: 2, descending: true, page: 12, caption: 'Choose a sharding to see it', chosen: (group) => group === chosen});

  const rowText = (row) => `${row.label} ${row.role} ${row.type} ${row.place}`;
  const list = sortedTable([
    {label: 'Value', value: (row) => row.label, cell: (row) => h('button', {type: 'button', class: 'link', on: {click: () => pick(row)}}, row.label)},
    {label: 'Role', value: (row) => row.role, text: (row) => row.role + (row.donated ? ', donated' : '')},
    {label: 'Type', value: (row) => row.type, text: (row) => row.type + (row.padded === row.type ? '' : `, padded to ${row.padded}`)},
    {label: 'Shard', value: (row) => row.shard, text: (row) => row.shard},
    {label: 'Per device', number: true, value: (row) => row.shard_bytes, text: (row) => byteText(row.shard_bytes)},
    {label: 'Wasted', number: true, hint: 'padding on all devices', value: (row) => row.padding_bytes, text: (row) => row.padding_bytes ? byteText(row.padding_bytes) : ''},
    {label: 'Source', value: (row) => row.place, text: (row) => row.place + (row.chosen_by_compiler ? ' (the compiler\'s choice)' : '')},
  ], [], {page: 15, caption: 'Values with this sharding', chosen: (row) => row === value});
  const filter = filterField('Filter the values', rowText, () => chosen.values, list.setRows);

  function show(position) {
    if (!drawn) {
      markSame([]);
      return;
    }
    details.replaceChildren(...holdingText(value, drawn.tiles, position));
    const place = drawn.places.get(position);
    for (const other of new Set([...drawn.places.values()].map((each) => each.ring))) other.setAttribute('visibility', 'hidden');
    if (place) fill(place.ring, {x: place.x, y: place.y, width: place.w, height: place.h, visibility: 'visible'}, []);
    const index = drawn.tiles.tile(position);
    markSame(index ? drawn.tiles.holders.get(index.join(',')).filter((each) => each !== position) : []);
  }
  function pick(next) {
    value = next;
    title.textContent = `${value.label}  ${value.type}  ${specText(chosen.sharding)}`;
    drawn = chosen.sharding ? shardingPicture(chosen.sharding, sizesOf(value.type)) : null;
    pictureBox.replaceChildren(drawn ? drawn.element : h('p', {class: 'muted'}, 'The whole value is on one device.'));
    details.replaceChildren();
    const open = chosen.sharding ? chosen.sharding.dimensions.map((each, d) => each.open ? d : -1).filter((d) => d >= 0) : [];
    inside.replaceChildren(...(chosen.sharding && chosen.sharding.unreduced.length ? [h('p', {class: 'hint'}, `Unreduced along ${axesText(chosen.sharding.unreduced)}: the value is the ${{max: 'maximum', min: 'minimum'}[chosen.sharding.unreduced_kind] ?? 'sum'} of the parts along it.`)] : []),
      ...(open.length ? [h('p', {class: 'hint'}, `Open: the compiler may split dimension ${open.join(', ')} further.`)] : []));
    list.refresh();
    show(looking.position);
  }
  function choose(group) {
    chosen = group;
    value = group.values[0];
    filter.field.value = '';
    filter.update();
    table.refresh();
    pick(value);
  }
  looking.listeners.push(show);
  choose(start);
  return section('values', 'Values and their shardings',
    h('p', {class: 'hint'}, 'A rectangle is the whole value, a cell is one part of it, and a color is one device. Chips inside a cell are devices that hold copies of the same part. Point at a device or use the arrow keys.'),
    table.element, title, h('div', {class: 'two'}, pictureBox, h('div', {class: 'sticky'}, details, inside)),
    h('div', {class: 'controls'}, filter.field, filter.count), list.element);
}
