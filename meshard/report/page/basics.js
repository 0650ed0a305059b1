// Element creation, number formats, colors.

const report = JSON.parse(document.getElementById('report').textContent);
const svgNamespace = document.getElementById('namespace').namespaceURI;

// Text is only used in text nodes and attribute values, because names come from untrusted modules.
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'on') {
      for (const [event, action] of Object.entries(value)) node.addEventListener(event, action);
    } else if (name === 'style') {
      for (const [property, text] of Object.entries(value)) node.style.setProperty(property, text);
    } else {
      node.setAttribute(name, value === true ? '' : value);
    }
  }
  node.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => fill(document.createElementNS(svgNamespace, tag), attributes, children);

const trimmed = (number, digits) => String(Number(number.toFixed(digits)));

const notKnown = 'not known';

// Same as byte_text in C++: powers of 1024, with one decimal place unless it is 0.
function byteText(bytes) {
  if (bytes === null) return notKnown;
  if (bytes < 0) return '-' + byteText(-bytes);
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  let unit = 0;
  while (unit + 1 < units.length && bytes >= (unit === 0 ? 1024 : 1023.95)) {
    bytes /= 1024;
    ++unit;
  }
  return `${trimmed(bytes, 1)} ${units[unit]}`;
}

function secondsText(seconds) {
  if (seconds === null) return notKnown;
  if (seconds === 0) return '0 s';
  for (const [size, unit] of [[1, 's'], [1e-3, 'ms'], [1e-6, 'µs']])
    if (seconds >= size * 0.9995) return `${Number((seconds / size).toPrecision(3))} ${unit}`;
  return `${Number((seconds * 1e9).toPrecision(3))} ns`;
}

function countText(number) {
  return number === null ? notKnown : Math.round(number).toLocaleString('en');
}

// 3.25e12 -> 3.25 T
function shortText(number) {
  if (number === null) return '?';
  const units = ['', ' k', ' M', ' G', ' T', ' P', ' E'];
  let unit = 0;
  while (unit + 1 < units.length && number >= 999.5) {
    number /= 1000;
    ++unit;
  }
  return Number(number.toPrecision(3)) + units[unit];
}

const counted = (number, one, many) => `${countText(number)} ${number === 1 ? one : many || one + 's'}`;

// `"x"`, `"x":(2)4`, in the form of AxisRef.
function axisText(axis) {
  return typeof axis === 'string' ? `"${axis}"` : `"${axis.axis}":(${axis.pre_size})${axis.size}`;
}
function axesText(axes) {
  return axes.map(axisText).join(', ');
}

function originText(origin) {
  const texts = [...new Set(origin.places.map((place) => (place.place || place.op) + (place.via ? `, via ${place.via}` : '')))].filter((text) => text);
  if (origin.certainty === 'unknown' || !texts.length) return 'an unknown place';
  return `${texts.join(', ')} (${origin.certainty})`;
}

// Converts OKLCH (Björn Ottosson, "A perceptual color space for image processing", 2020) to rgb(). Equal steps look
// equally different, so that no device is emphasized. Hue in turns.
function color(lightness, chroma, hue) {
  const a = chroma * Math.cos(hue * 2 * Math.PI), b = chroma * Math.sin(hue * 2 * Math.PI);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const q = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const channel = (linear) => {
    const value = linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055;
    return Math.round(255 * Math.min(1, Math.max(0, value)));
  };
  return `rgb(${channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * q)}, ` +
    `${channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * q)}, ` +
    `${channel(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * q)})`;
}

// A color and its text color: black has the higher contrast above a luminance of 0.179, which is this lightness.
function shade(hue, lightness) {
  return {fill: color(lightness, 0.115, hue), text: lightness > 0.57 ? '#101215' : '#ffffff'};
}
