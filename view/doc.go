// Package view shows models in a browser: a web server that only the user of this machine reaches, and the pages and
// viewers that it serves. It needs no GPU.
//
// Listen makes a Server; then one of three calls gives it something to show:
//
//	Show           a finished model, in the embedded SuperSplat Viewer. WritePage makes one file of the same
//	ShowStreamed   pictures of a model that no browser takes: whoever has a device draws them
//	ShowTraining   a run as it trains: frames, curves, losses, and buttons that pause, save and stop
//
// Server knows nothing of splats. guard.go judges every request, and takes whatever comes from the network for hostile:
// tokens, cookies, Host and Origin, sizes and times. Start there before you add a page.
//
// watch.go is the WebSocket of a training. The newest request counts: no more than two frames are on the way to a
// browser, and frames that no browser could show are not drawn. The caller's Training draws, between two steps.
//
// start.go chooses the first view, and what is up. supersplat holds the viewer of finished models, which
// tools/supersplat fetches and checks; page/boot.js says what it relies on, and asrendered.go where its
// program is edited. Package playtest drives all of it with a
// real browser in tests.
package view
