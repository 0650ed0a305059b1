// The head of the page, memory, time, reshards, notes.

function section(id, title, ...children) {
  return h('section', {id, 'aria-labelledby': `${id}-title`}, h('h2', {id: `${id}-title`}, title), ...children);
}

const collectiveBytes = (one) => Math.max(one.bytes_in, one.bytes_out);
const inAll = (one) => collectiveBytes(one) * one.executions;

function tile(kind, target, label, figure, rest) {
  return h('a', {class: `tile ${kind}`, href: target}, h('span', {class: 'label'}, label), h('span', {class: 'figure'}, figure),
    h('span', {class: 'label'}, rest));
}

function tiles() {
  const all = [];
  const memory = report.memory;
  if (report.out_of_memory) {
    all.push(tile('bad', '#memory', 'Memory per device', 'Does not fit', memory && memory.spare < 0 ? `${byteText(-memory.spare)} too much` : 'the compiler rejects the program'));
  } else if (memory && memory.capacity !== null) {
    const fits = memory.spare >= 0;
    all.push(tile(fits ? 'good' : 'bad', '#memory', 'Memory per device', fits ? 'Fits' : 'Does not fit',
      `${byteText(memory.total)} of ${byteText(memory.capacity)}, ${fits ? `${byteText(memory.spare)} to spare` : `${byteText(-memory.spare)} too much`}`));
  } else if (memory) {
    all.push(tile('', '#memory', 'Memory per device', byteText(memory.total), 'the capacity of the device is not known'));
  }
  const roofline = report.roofline;
  if (roofline) {
    if (!roofline.rates_known) all.push(tile('', '#time', 'Lower bound of communication', secondsText(roofline.seconds), 'the rates of the device are not known'));
    else all.push(tile('', '#time', 'Lower bound per step', secondsText(roofline.seconds),
      `bound by ${roofline.bound_by}; at least ${secondsText(roofline.seconds_in_sequence)} if nothing overlaps`));
  }
  const schedule = report.schedule;
  if (schedule) all.push(tile('', '#time', 'Estimated step time', secondsText(schedule.seconds),
    `${secondsText(schedule.links.exposed_seconds)} of it waits for communication; ${secondsText(schedule.links.hidden_seconds)} is hidden`));
  const collectives = wholeCollectives(), bytes = collectives.reduce((sum, one) => sum + inAll(one), 0);
  if (bytes || !report.out_of_memory) all.push(tile('', '#collectives', 'Communication per device', collectives.length ? byteText(bytes) : 'None',
    `${counted(collectives.length, 'collective')} in the program`));
  const full = report.reshards.filter((one) => one.kind === 'full rematerialization').length;
  if (report.reshards.length) {
    all.push(tile(full ? 'warn' : '', '#reshards', 'Reshards', countText(report.reshards.length),
      full ? `${countText(full)} ${full === 1 ? 'puts' : 'put'} the whole value on every device` : 'none puts the whole value on every device'));
  }
  const padding = report.arguments.concat(report.results).reduce((sum, value) => sum + value.padding_bytes, 0);
  if (padding) all.push(tile('warn', '#values', 'Padding', byteText(padding), 'wasted, summed over all devices'));
  // As many columns as give full rows: 6 tiles are two rows of 3, not 5 and 1.
  return h('div', {class: 'tiles', style: {'--columns': all.length > 5 ? Math.ceil(all.length / 2) : all.length}}, all);
}

function facts() {
  const target = report.target, all = [];
  const fact = (label, text) => { if (text) all.push(h('span', {}, `${label} `, h('b', {}, text))); };
  fact('for', target.name);
  fact('devices', `${countText(target.devices)}${target.device_kind ? ` × ${target.device_kind}` : ''}`);
  if (report.mesh !== null) fact('mesh', report.meshes[report.mesh].axes.map((axis) => `${axis.name}=${axis.size}`).join(', '));
  if (report.processes) {
    const axes = report.processes.axes;
    fact('processes', `${countText(report.processes.count)}, ${axes.length ? `crossed by ${axes.join(', ')}` : 'crossed by no axis'}`);
  }
  fact('compiler', target.compiler);
  if (target.compile_seconds) fact('compiled in', secondsText(target.compile_seconds));
  return h('p', {class: 'facts'}, all);
}

function memorySection() {
  const memory = report.memory;
  const refused = report.out_of_memory ? [h('p', {}, h('b', {}, 'The compiler rejects the program:')), h('pre', {class: 'words', tabindex: '0'}, report.out_of_memory)] : null;
  if (!memory) return refused ? section('memory', 'Memory per device', refused) : null;
  const parts = [['arguments', memory.arguments, 'blue'], [memory.aliased ? 'outputs outside of donated arguments' : 'outputs', memory.outputs - memory.aliased, 'green'],
    ['temporaries', memory.temporaries, 'orange'], ['code', memory.code, 'purple']];
  const scale = Math.max(memory.total, memory.capacity || 0, 1);
  const bar = h('div', {class: 'bar', role: 'img', 'aria-label': `${byteText(memory.total)} in use` +
    (memory.capacity === null ? '' : ` of ${byteText(memory.capacity)}`)},
  parts.map(([name, bytes, colorName]) => bytes > 0 &&
    h('i', {class: colorName, title: `${name} ${byteText(bytes)}`, style: {width: `${100 * bytes / scale}%`}})),
  memory.capacity !== null && h('span', {class: 'limit', style: {left: 0, width: `${100 * memory.capacity / scale}%`}},
    h('span', {}, `${byteText(memory.capacity)} on the device`)));
  // The colored entries are the segments of the bar; their sum is the total.
  const legend = h('ul', {class: 'legend'}, parts.map(([name, bytes, colorName]) => h('li', {}, h('i', {class: colorName}),
    `${name} ${name === 'code' && !bytes ? notKnown : byteText(bytes)}`)), h('li', {}, h('b', {}, `= ${byteText(memory.total)}`)),
  memory.spare !== null && h('li', {}, memory.spare >= 0 ? `${byteText(memory.spare)} to spare` : h('b', {}, `${byteText(-memory.spare)} over the capacity`)));
  const apart = [`Peak: ${memory.peak > 0 ? byteText(memory.peak) : notKnown}${memory.peak > memory.total ? ', in which this compiler counts on-chip memory' : ''}.`,
    memory.aliased ? `Outputs in the memory of donated arguments: ${byteText(memory.aliased)}.` : ''].filter((text) => text);
  const host = [['arguments', memory.host_arguments], ['outputs', memory.host_outputs], ['temporaries', memory.host_temporaries]].filter(([, bytes]) => bytes > 0);
  if (host.length) apart.push(`In the memory of the host: ${host.map(([name, bytes]) => `${name} ${byteText(bytes)}`).join(', ')}.`);
  const buffers = report.largest_buffers.length ? [h('h3', {}, 'Largest buffers'), sortedTable([
    {label: 'Bytes', number: true, value: (row) => row.bytes, text: (row) => byteText(row.bytes)},
    {label: 'Role', value: (row) => row.role, text: (row) => row.role},
    {label: 'Name', value: (row) => row.name, text: (row) => row.name},
    {label: 'Type', value: (row) => row.type, text: (row) => row.type},
    {label: 'Source', value: (row) => row.place, text: (row) => row.place},
  ], report.largest_buffers, {sort: 0, descending: true, page: 10, caption: 'In the main memory of one device'}).element] : null;
  return section('memory', 'Memory per device', refused, bar, legend, h('p', {}, apart.join(' ')), buffers);
}

/** The estimate from the order of the instructions: what computes, what waits, and for which collectives. */
function scheduleLines() {
  const schedule = report.schedule;
  if (!schedule) return null;
  const line = (label, value, color) => ({label, value, parts: [{value, color, title: label}], most: false, text: secondsText(value)});
  const table = schedule.communication.length ? sortedTable([
    {label: 'Communication', value: (row) => row.kind, text: (row) => row.kind},
    {label: 'Axes', value: (row) => row.axes, text: (row) => row.axes},
    {label: 'Executions', number: true, value: (row) => row.executions, text: (row) => countText(row.executions)},
    {label: 'Exposed', number: true, value: (row) => row.exposed_seconds, text: (row) => secondsText(row.exposed_seconds)},
    {label: 'Hidden', number: true, value: (row) => row.hidden_seconds, text: (row) => secondsText(row.hidden_seconds)},
  ], schedule.communication, {sort: 3, descending: true, page: 10, caption: 'Communication that computation waits for (exposed), and that overlaps with it (hidden)'}).element : null;
  return [h('h3', {}, `Estimate: ${secondsText(schedule.seconds)} per step`), h('p', {class: 'hint'}, 'The instructions in the order of the module, each at the rates of the device.'),
    barLines([line('compute and memory', schedule.busy_seconds, 'blue'), line('exposed communication', schedule.links.exposed_seconds, 'orange'),
      ...(schedule.host.exposed_seconds + schedule.host.hidden_seconds > 0 ? [line('exposed host transfers', schedule.host.exposed_seconds, 'purple')] : [])]), table];
}

/** What a trace says, beside the estimate. */
function measuredLines() {
  const measured = report.measured;
  if (!measured) return null;
  const estimate = (row) => report.schedule && report.schedule.communication.find((each) => each.kind === row.kind && each.axes === row.axes);
  const estimated = (row, name) => estimate(row) ? secondsText(estimate(row)[name]) : '';
  const table = measured.communication.length ? sortedTable([
    {label: 'Communication', value: (row) => row.kind, text: (row) => row.kind},
    {label: 'Axes', value: (row) => row.axes, text: (row) => row.axes},
    {label: 'Exposed', number: true, value: (row) => row.exposed_seconds, text: (row) => secondsText(row.exposed_seconds)},
    {label: 'Estimated', number: true, value: (row) => estimate(row) ? estimate(row).exposed_seconds : 0, text: (row) => estimated(row, 'exposed_seconds')},
    {label: 'Hidden', number: true, value: (row) => row.hidden_seconds, text: (row) => secondsText(row.hidden_seconds)},
    {label: 'Estimated', number: true, value: (row) => estimate(row) ? estimate(row).hidden_seconds : 0, text: (row) => estimated(row, 'hidden_seconds')},
  ], measured.communication, {sort: 2, descending: true, page: 10, caption: 'Communication in the trace'}).element : null;
  return [h('h3', {}, `Measured: ${secondsText(measured.seconds)} per step`), h('p', {class: 'hint'},
    `Mean of ${counted(measured.runs, 'run')} on ${counted(measured.devices, 'device')}: ${secondsText(measured.links.exposed_seconds)} exposed communication, ` +
    `${secondsText(measured.links.hidden_seconds)} hidden; ${counted(measured.matched_events, 'event')}` +
    (measured.unmatched_events ? `, ${countText(measured.unmatched_events)} of other instructions (${measured.unmatched.join(', ')})` : '')), table];
}

function hostTransferLine() {
  const moved = report.host_transfers;
  return moved && h('p', {}, `Host memory: ${byteText(moved.from_host)} from the host and ${byteText(moved.to_host)} to it in ${counted(moved.executions, 'transfer')}` +
    `${moved.seconds ? `, about ${secondsText(moved.seconds)}` : ''}.`);
}

function customCallSection() {
  if (!report.custom_calls.length) return null;
  const cost = (row, value) => row.source === 'unknown' ? notKnown : value;
  const table = sortedTable([
    {label: 'Name', value: (row) => row.name, cell: (row) => [row.name, row.target === row.name ? '' : h('span', {class: 'muted'}, ` ${row.target}`)]},
    {label: 'Executions', number: true, value: (row) => row.executions, text: (row) => countText(row.executions)},
    {label: 'Operands', number: true, value: (row) => row.operand_bytes, text: (row) => byteText(row.operand_bytes)},
    {label: 'Results', number: true, value: (row) => row.result_bytes, text: (row) => byteText(row.result_bytes)},
    {label: 'Cost given by', value: (row) => row.source, text: (row) => row.source === 'unknown' ? notKnown : row.source},
    {label: 'Operations', number: true, value: (row) => row.flops, text: (row) => cost(row, `${shortText(row.flops)}flop`)},
    {label: 'Memory', number: true, value: (row) => row.memory_bytes, text: (row) => cost(row, byteText(row.memory_bytes))},
    {label: 'Sent', number: true, value: (row) => row.link_bytes, text: (row) => row.communicates && !row.link_bytes ? notKnown : byteText(row.link_bytes)},
    {label: 'Source', value: (row) => row.place, text: (row) => row.place},
  ], report.custom_calls, {sort: 1, descending: true, page: 20, caption: 'Custom calls, with sums over all their executions'});
  return section('custom-calls', 'Custom calls', table.element);
}

function timeSection() {
  const roofline = report.roofline, cost = report.cost;
  if (!roofline && !cost.flops.length && !cost.memory_bytes) return null;
  const children = [];
  if (roofline) {
    const all = roofline.links.reduce((sum, link) => sum + link.seconds, 0);
    const links = roofline.communication_seconds === null ? all : roofline.communication_seconds;
    const line = (label, name, value, color) => ({label, value, parts: [{value, color, title: label}], most: roofline.bound_by === name, text: secondsText(value)});
    const others = roofline.links.map((link) => ({...line(`${link.link}${link.axes ? ` along ${link.axes}` : ''}`, '', link.seconds, 'gray'),
      text: `${byteText(link.bytes)}, ${secondsText(link.seconds)}`}));
    children.push(h('p', {class: 'hint'}, roofline.rates_known ? 'Lower bounds from published or given figures: no step is faster than the longest of them.' :
      'The figures of the device are not known. Only links whose figures were given count.'),
      barLines([...(roofline.rates_known ? [line('compute', 'compute', roofline.compute_seconds, 'blue'), line('memory', 'memory', roofline.memory_seconds, 'blue')] : []),
        line('communication', 'communication', links, 'orange')]));
    if (others.length) {
      const together = Math.abs(links - all) <= 1e-6 * all ? 'one after another' : 'at the same time where they can';
      children.push(h('p', {class: 'hint'}, roofline.links.length > 1 ? `The links, which communicate ${together}:` : 'The link:'), barLines(others));
    }
  }
  children.push(scheduleLines(), measuredLines(), hostTransferLine());
  const flops = cost.flops.map((each) => `${shortText(each.matrix + each.other)}flop in ${each.element_type}` +
    (each.matrix ? ` (${shortText(each.matrix)} in matrix products)` : ''));
  if (cost.memory_bytes) flops.push(`${byteText(cost.memory_bytes)} to and from memory`);
  if (cost.transcendentals) flops.push(`${shortText(cost.transcendentals)} transcendentals`);
  if (flops.length) children.push(h('p', {}, `One device: ${flops.join(', ')}.`, cost.loops_known ? '' : ' A loop of unknown length counts once.'));
  if (roofline && roofline.sources.length) {
    children.push(h('details', {}, h('summary', {class: 'hint'}, 'Where the figures come from'),
      h('ul', {class: 'hint'}, roofline.sources.map((source) => h('li', {}, source)))));
  }
  return section('time', 'Time per step', ...children);
}

function reshardSection() {
  if (!report.reshards.length) return null;
  const table = sortedTable([
    {label: 'Kind', value: (row) => row.kind, cell: (row) => h('span', {class: row.kind === 'full rematerialization' ? 'badge bad' : 'badge'}, row.kind)},
    {label: 'Value', value: (row) => row.type, text: (row) => row.type},
    {label: 'From → to', value: (row) => row.from, cell: (row) => row.from || row.to ? `${row.from} → ${row.to}` : ''},
    {label: 'Total bytes', number: true, hint: 'Bytes that one device receives, times the number of runs', value: (row) => row.bytes * row.executions,
      text: (row) => byteText(row.bytes * row.executions) + (row.executions === 1 ? '' : ` (× ${countText(row.executions)})`)},
    {label: 'Why', value: (row) => row.cause, cell: (row) => [row.cause, h('span', {class: 'muted'},
      `${row.cause ? '; ' : ''}${row.instruction}`)]},
    {label: 'Source', value: (row) => originText(row.origin), text: (row) => originText(row.origin)},
    {label: 'Inserted by', value: (row) => insertedBy(row.who), text: (row) => insertedBy(row.who)},
  ], report.reshards, {sort: 3, descending: true, page: 20, caption: 'Where the program moves a value from one sharding to another'});
  return section('reshards', 'Reshards', table.element);
}

function notesBox() {
  if (!report.notes.length) return null;
  return h('aside', {class: 'notes', 'aria-label': 'Notes'}, h('ul', {}, report.notes.map((note) => h('li', {}, note))));
}
