// The collectives, grouped by axes, and as a table.

function collectiveAxes(one) {
  if (one.axes === null) return one.group_size ? `groups of ${one.group_size}, no axes` : 'no axes';
  const shifts = one.shifts.map((shift) => `${axesText(shift.axes)} by ${shift.by > 0 ? '+' : ''}${shift.by}${shift.wraps ? '' : ' without wrapping'}`);
  return (one.axes.length ? axesText(one.axes) : 'within a device') + (shifts.length ? `, moving ${shifts.join(' and ')}` : '');
}

// The collectives as the program has them, each with its instructions.
const wholeCollectives = () => report.logical_collectives.map((one) => ({...one.whole, instructions: one.instructions}));

const purposeNouns = {weight: ['weight', 'weights'], argument: ['argument', 'arguments'], gradient: ['gradient of', 'gradients of'], update: ['update of', 'updates of'], result: ['result', 'results']};

// What a collective is for: `weights w1, w2`, `activations`.
function purposeText(kind, names) {
  const noun = purposeNouns[kind];
  if (!noun || !names.length) return kind === 'unknown' || kind === 'user' ? '' : kind;
  return `${noun[names.length > 1 ? 1 : 0]} ${names.slice(0, 6).join(', ')}${names.length > 6 ? `, and ${names.length - 6} more` : ''}`;
}

// Who caused a collective.
const insertedBy = (cause) => ({inserted: 'partitioner', 'asked for': 'program'})[cause] || notKnown;

// Groups collectives that differ only in their instruction and size, as in the text form.
function collectiveGroups() {
  const groups = new Map();
  for (const one of wholeCollectives()) {
    const key = JSON.stringify([one.kind, one.axes, one.group_size, one.shifts, originText(one.origin), one.loop_depth, one.conditional,
      one.cause, one.form, one.continues, one.across_processes, one.executions, one.executions_known, one.purpose.kind, one.purpose.phase]);
    if (!groups.has(key)) groups.set(key, {...one, instructions: [], names: new Set(), layers: new Set(), count: 0, each: 0, all: 0});
    const group = groups.get(key);
    ++group.count;
    group.each += collectiveBytes(one);
    group.all += inAll(one);
    group.instructions.push(...one.instructions);
    for (const name of one.purpose.names) group.names.add(name);
    if (one.purpose.layer) group.layers.add(one.purpose.layer);
  }
  return [...groups.values()];
}

// A table of the layers; null if none is known.
function layersSection() {
  if (!report.layers.length) return null;
  return section('layers', 'Layers', sortedTable([
    {label: 'Layer', value: (row) => row.layer, text: (row) => row.layer || 'outside the layers'},
    {label: 'Phase', tight: true, value: (row) => row.phase, text: (row) => row.phase === 'unknown' ? notKnown : row.phase},
    {label: 'Purpose', tight: true, value: (row) => row.purpose, text: (row) => row.purpose === 'unknown' ? notKnown : row.purpose},
    {label: 'Collectives', number: true, value: (row) => row.count, text: (row) => countText(row.count)},
    {label: 'Runs', number: true, value: (row) => row.executions, text: (row) => countText(row.executions)},
    {label: 'Total bytes', number: true, value: (row) => row.total_bytes, text: (row) => byteText(row.total_bytes)},
  ], report.layers, {page: 20, caption: 'Collectives by layer; choose a heading to sort'}).element);
}

function collectivesSection() {
  const single = wholeCollectives().map((one) => ({...one, names: new Set(one.purpose.names), layers: new Set(one.purpose.layer ? [one.purpose.layer] : []),
    count: 1, each: collectiveBytes(one), all: inAll(one)}));
  if (!single.length && report.out_of_memory) return null;
  if (!single.length) return section('collectives', 'Collectives', h('p', {}, 'The program has no collectives.'));
  const together = collectiveGroups();
  const byAxes = new Map();
  for (const one of together) {
    const key = one.axes === null ? 'no axes' : one.axes.length ? axesText(one.axes) : 'within a device';
    byAxes.set(key, (byAxes.get(key) || 0) + one.all);
  }
  const axes = [...byAxes].sort((a, b) => b[1] - a[1]);
  const most = 8, rest = axes.slice(most).reduce((sum, [, bytes]) => sum + bytes, 0);
  const shownAxes = [...axes.slice(0, most), ...(rest ? [[`${counted(axes.length - most, 'other combination')} of axes`, rest]] : [])];
  const kinds = [...new Set(single.map((one) => one.kind))];
  let rows = together;
  const often = (row) => `${row.count > 1 ? `${countText(row.count)} × ` : ''}${row.executions_known ? '' : '≥ '}${countText(row.executions)}`;
  const table = sortedTable([
    {label: 'Kind', tight: true, value: (row) => row.kind, text: (row) => row.kind},
    {label: 'Axes', value: collectiveAxes, text: collectiveAxes},
    {label: 'Total bytes', number: true, hint: 'the larger of the bytes that one device sends and receives, times the number of runs', value: (row) => row.all, text: (row) => byteText(row.all)},
    {label: 'Bytes per run', number: true, value: (row) => row.each, text: (row) => byteText(row.each)},
    {label: 'Runs', number: true, hint: 'collectives × executions of each', value: (row) => row.count * row.executions, text: often},
    {label: 'Purpose', value: (row) => purposeText(row.purpose.kind, [...row.names]), cell: (row) => [purposeText(row.purpose.kind, [...row.names]),
      (row.layers.size > 0 || row.purpose.phase !== 'unknown') && h('div', {class: 'muted'}, [row.purpose.phase === 'unknown' ? '' : row.purpose.phase, [...row.layers].slice(0, 6).join(', ') + (row.layers.size > 6 ? `, and ${row.layers.size - 6} more` : '')].filter((text) => text).join(', '))]},
    {label: 'Source', value: (row) => originText(row.origin), cell: (row) => [originText(row.origin), row.tensor && h('div', {class: 'muted'}, row.tensor)]},
    {label: 'Inserted by', value: (row) => insertedBy(row.cause), text: (row) => insertedBy(row.cause)},
    {label: 'Form', hint: 'how the compiler wrote it, and where it runs', value: (row) => row.form, text: (row) => [row.form, row.continues ? 'continued from an earlier one' : '', row.across_processes ? 'across processes' : '',
      row.loop_depth ? `in ${row.loop_depth === 1 ? 'a loop' : `${row.loop_depth} loops`}` : '', row.conditional ? 'in a branch' : ''].filter((text) => text).join(', ')},
    {label: 'Instruction', value: (row) => row.instructions[0], text: (row) => row.instructions[0] + (row.instructions.length > 1 ? ` and ${countText(row.instructions.length - 1)} more` : '')},
  ], rows, {sort: 2, descending: true, page: 50, caption: 'Collectives; choose a heading to sort'});
  const rowText = (row) => `${row.kind} ${collectiveAxes(row)} ${originText(row.origin)} ${row.tensor} ${row.form} ${row.across_processes ? 'across processes' : ''} ${row.cause} ${row.instructions.join(' ')} ${row.purpose.kind} ${row.purpose.phase} ${[...row.names, ...row.layers].join(' ')}`;
  const kind = h('select', {'aria-label': 'Kind', on: {change: () => filter.update()}}, h('option', {value: ''}, 'all kinds'), kinds.map((each) => h('option', {value: each}, each)));
  const filter = filterField('Filter the collectives', rowText, () => rows.filter((row) => !kind.value || row.kind === kind.value), table.setRows);
  const apart = h('button', {type: 'button', 'aria-pressed': 'false', on: {click: () => {
    const pressed = apart.getAttribute('aria-pressed') !== 'true';
    apart.setAttribute('aria-pressed', String(pressed));
    rows = pressed ? single : together;
    filter.update();
  }}}, 'List each collective');
  filter.update();
  return section('collectives', 'Collectives',
    h('p', {class: 'hint'}, 'The larger of the bytes that one device sends and receives; not the traffic on the links.'),
    barLines(shownAxes.map(([label, bytes]) => ({label, value: bytes, text: byteText(bytes), parts: [{value: bytes, color: 'orange'}]}))),
    h('div', {class: 'controls'}, filter.field, kind, apart, filter.count), table.element);
}
