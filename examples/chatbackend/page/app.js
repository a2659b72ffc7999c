"use strict";
const $ = id => document.getElementById(id);
const chats = []; // {id, name, log: its element, busy}
let current;

// All text goes in by textContent: servers and models may write anything.
function add(parent, tag, cls, text) {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  if (text !== undefined) e.textContent = text;
  parent.append(e);
  return e;
}

function newChat() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  const id = Array.from(bytes, b => b.toString(16).padStart(2, "0")).join("");
  const number = chats.length ? chats.at(-1).number + 1 : 1;
  chats.push({ id, number, name: "Chat " + number, entries: document.createDocumentFragment(), busy: false });
  show(chats.at(-1));
}

// show puts a chat's entries on the page. Those of the others live on in their
// fragments, so that turns under way go on writing to them.
function show(chat) {
  if (current) current.entries.append(...$("log").childNodes);
  current = chat;
  $("log").append(chat.entries);
  $("chats").replaceChildren();
  for (const c of chats) {
    const b = add(add($("chats"), "li"), "button", "", c.name + (c.busy ? " …" : ""));
    b.type = "button";
    if (c === current) b.setAttribute("aria-current", "true");
    b.onclick = () => show(c);
  }
  buttons();
  toEnd(chat);
}

function toEnd(chat) {
  if (chat === current) $("log").scrollTop = $("log").scrollHeight;
}

function buttons() {
  $("send").disabled = current.busy;
  $("stop").disabled = !current.busy;
  $("text").focus();
}

function entry(chat, tag, cls, text) {
  return add(chat === current ? $("log") : chat.entries, tag, cls, text);
}

async function turn(chat, text) {
  chat.busy = true;
  show(chat);
  entry(chat, "p", "user", text);
  const calls = new Map(); // the box of each call
  try {
    const response = await fetch(`chats/${chat.id}/turn`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ text }),
    });
    if (!response.ok) throw new Error(await response.text());
    let rest = "";
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      const events = (rest + chunk).split("\n\n");
      rest = events.pop();
      for (const e of events) {
        const [, name, data] = e.match(/^event: (.*)\ndata: (.*)$/);
        handle(chat, calls, name, JSON.parse(data));
        toEnd(chat);
      }
    }
  } catch (err) {
    entry(chat, "p", "note bad", "connection lost: " + err.message);
  }
  chat.busy = false;
  show(current);
}

function handle(chat, calls, name, data) {
  switch (name) {
    case "call":
      calls.set(data.id, entry(chat, "div", "call", data.name + " " + data.args));
      break;
    case "progress": {
      const box = calls.get(data.id);
      const bar = box.querySelector("progress") || add(box, "progress");
      if (data.total) bar.max = data.total;
      bar.value = data.progress;
      bar.setAttribute("aria-label", data.message || "progress");
      break;
    }
    case "result": {
      const box = calls.get(data.id);
      box.querySelector("progress")?.remove();
      add(box, "div", data.isError ? "bad" : "", data.text);
      for (const src of data.images || []) {
        const img = add(box, "img");
        img.src = src;
        img.alt = "an image from the tool";
      }
      break;
    }
    case "answer":
      entry(chat, "p", "answer", data.text);
      break;
    case "stopped":
      entry(chat, "p", "note", "stopped");
      break;
  }
}

$("form").onsubmit = e => {
  e.preventDefault();
  const text = $("text").value.trim();
  if (!text || current.busy) return;
  $("text").value = "";
  turn(current, text);
};
$("stop").onclick = () => fetch(`chats/${current.id}/stop`, { method: "POST" });
$("new").onclick = newChat;
$("delete").onclick = async () => {
  const gone = current;
  await fetch(`chats/${gone.id}`, { method: "DELETE" });
  chats.splice(chats.indexOf(gone), 1);
  if (current !== gone) { show(current); return; }
  $("log").replaceChildren();
  current = undefined;
  if (chats.length) show(chats.at(-1)); else newChat();
};
newChat();
