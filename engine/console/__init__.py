"""Pages for people: the console of a venue, and the console of a maker.

In: files of this folder. Out: URL paths `/` and `/console/...` with their files.
Reading order: `serving`.

`shared/` holds the scripts and styles of both consoles, `venue/` and `maker/` a page each. The scripts are
JavaScript modules that browsers load as they are: no build step, no files of other hosts. A page knows only
the answers of the public API, and those that its user's key may read. Read `venue/index.html` and
`venue/app.js` first.
"""
