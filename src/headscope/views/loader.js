/* Unpacks style and script of a saved page, which are gzipped in it, and puts them in. Plain enough for old browsers,
   which are told what they lack. What is put in must have the digests that the page's policy names. */
(function () {
  function fail(why) {
    var told = document.createElement("p");
    told.setAttribute("role", "alert");
    told.textContent = "This page cannot be drawn. " + why;
    document.body.insertBefore(told, document.body.firstChild);
  }

  function unpacked(name) {
    var text = atob(document.querySelector("script[data-program=" + name + "]").textContent);
    var bytes = new Uint8Array(text.length);
    for (var at = 0; at < bytes.length; at++) bytes[at] = text.charCodeAt(at);
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }

  function add(name, text) {
    var element = document.createElement(name);
    if (name === "script") element.type = "module";
    element.setAttribute("data-unpacked", "");
    element.textContent = text;
    document.head.appendChild(element);
  }

  if (!window.DecompressionStream) {
    fail("It needs a newer browser: Chrome or Edge from 105 on, Firefox from 113, Safari from 16.4.");
    return;
  }
  Promise.resolve()
    .then(function () {
      return Promise.all([unpacked("style"), unpacked("script")]);
    })
    .then(function (texts) {
      add("style", texts[0]);
      add("script", texts[1]);
    })
    .catch(function () {
      fail("The file seems to be damaged: get it again.");
    });
})();
