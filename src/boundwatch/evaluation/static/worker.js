// Keeps the empty sheet for a reload without network. Browsers run this on https and on localhost only.
"use strict";

const SHEET = ["/", "/static/page.css", "/static/page.js", "/static/icon.svg"];
const CACHE = "boundwatch-sheet";

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(SHEET)).then(() => self.skipWaiting()));
});
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

async function freshOrKept(path) {
  const cache = await caches.open(CACHE);
  try {
    const answer = await fetch(path);
    if (answer.ok) await cache.put(path, answer.clone());
    return answer;
  } catch (error) {
    return (await cache.match(path)) || Promise.reject(error);
  }
}

self.addEventListener("fetch", (event) => {
  const path = new URL(event.request.url).pathname;
  if (event.request.method === "GET" && SHEET.includes(path)) event.respondWith(freshOrKept(path));
});
