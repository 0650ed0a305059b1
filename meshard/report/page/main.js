// Builds the page.

const themeListeners = [];

function themeButton() {
  const dark = () => {
    const chosen = document.documentElement.getAttribute('data-theme');
    return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  };
  const button = h('button', {type: 'button', id: 'theme', on: {click: () => {
    document.documentElement.setAttribute('data-theme', dark() ? 'light' : 'dark');
    label();
    for (const listener of themeListeners) listener();
  }}});
  const label = () => { button.textContent = dark() ? 'Light' : 'Dark'; };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    label();
    for (const listener of themeListeners) listener();
  });
  label();
  return button;
}

const sections = [collectivesSection(), layersSection(), reshardSection(), memorySection(), timeSection(), devicesSection(), valuesSection(), customCallSection(), timelineSection()]
  .filter((each) => each);
document.getElementById('top').append(h('h1', {}, report.name), facts());
document.getElementById('content').append(tiles(), ...[notesBox()].filter((each) => each), ...sections);
const names = {collectives: 'Collectives', layers: 'Layers', reshards: 'Reshards', memory: 'Memory', time: 'Time', devices: 'Devices', values: 'Shardings', 'custom-calls': 'Custom calls', timeline: 'Timeline'};
document.getElementById('top').after(h('nav', {'aria-label': 'Sections'}, h('div', {}, sections.map((each) => h('a', {href: `#${each.id}`}, names[each.id])), themeButton())));
document.documentElement.setAttribute('data-ready', 'true');
