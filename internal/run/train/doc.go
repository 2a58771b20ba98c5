// Package train is a whole training run: Do reads the capture, plans memory, trains, saves, measures and reports. Run
// advances from stop to stop and emits events; observers show and record it (events.go); its parts, as dataset,
// machine, saver and scorer, know nothing of it. Settings are layers (settings.go), refusals and warnings rows of
// tables (rules.go). Start with train.go.
package train
