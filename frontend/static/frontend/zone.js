// Times are in UTC or in the browser's time zone, as chosen in the header. The server writes them, so it is told the name of
// the zone by a cookie; after a journey to another zone, the cookie follows.
(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  const cookie = (document.cookie.match(/(?:^|; )kcoord_zone=([^;]*)/) ?? [])[1] ?? "";
  const keep = (name) => {
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `kcoord_zone=${name}; Path=/; Max-Age=${name ? 31_536_000 : 0}; SameSite=Lax${secure}`;
  };
  if (cookie && cookie !== zone) {
    keep(zone);
    if (document.cookie.includes(`kcoord_zone=${zone}`)) { location.reload(); return; }
  }

  const button = document.getElementById("zone");
  if (!button) return;
  button.textContent = cookie ? "Local time" : "UTC";
  button.setAttribute("aria-label", cookie ? `Local time: ${zone}` : "UTC: times of all pages");
  button.title = cookie ? `Times are in ${zone}; choose UTC` : `Times are in UTC; choose local time, ${zone}`;
  button.hidden = false;
  button.addEventListener("click", () => {
    keep(cookie ? "" : zone);
    location.reload();
  });
})();
