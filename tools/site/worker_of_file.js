// Browsers start no worker from a page that was opened from the disk (file:), and the search runs in one. There it gets a
// frame of its own in place of a worker, with the same messages.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(name) {
      super();
      const url = new URL(name, location);
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.ready = new Promise((done) => { frame.onload = done; });
      const bridge = `
        const listeners = [];
        self.postMessage = (data) => parent.postMessage(data, "*");
        self.addEventListener = (type, listener) => { if (type === "message") listeners.push(listener); };
        self.importScripts = (...urls) => {
          for (const each of urls) document.write('<script src="' + new URL(each, "${new URL(".", url)}") + '"><\\/script>');
        };
        self.deliver = (event) => { for (const each of listeners) each(event); if (self.onmessage) self.onmessage(event); };`;
      frame.srcdoc = `<script>${bridge}</` + `script><script src="${url}"></` + "script>";
      this.frame = frame;
      window.addEventListener("message", (event) => {
        if (event.source !== frame.contentWindow) return;
        const copy = new MessageEvent("message", {data: event.data});
        this.dispatchEvent(copy);
        if (this.onmessage) this.onmessage(copy);
      });
      const add = () => document.body.append(frame);
      if (document.body) add(); else document.addEventListener("DOMContentLoaded", add);
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.deliver(new MessageEvent("message", {data})));
    }

    terminate() { this.frame.remove(); }
  };
}
