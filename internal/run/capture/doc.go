// Package capture makes a COLMAP scene of photos and videos: the folder that training reads. It runs the programs that
// people have, ffmpeg for videos and COLMAP for cameras, and asks each what it can do before it says anything to it.
//
// Run is the entry. What would fail late is found first (preflight.go). The work is a list of stages (stages.go):
// photos, frames, faces, masks, features, matches, mapping, model. A stage has a key, a hash of what decides its
// results and of the key of the stage before it. A stage that is done with the same key is not done again, so a command
// that was stopped continues where it was, and a changed option redoes the stages from the first that it affects.
//
// tools.go knows programs and how to install them, colmap.go the names of COLMAP's options in its versions, video.go
// how frames are chosen, panorama.go how COLMAP gets panoramas, verdict.go and report.go what came of it.
package capture
