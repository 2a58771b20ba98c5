// Package train is a whole training run: Do reads the capture, plans memory, trains, saves, evaluates and reports. Run
// holds its state; saver writes and clears away checkpoints and keeps an earlier run aside; record writes metrics; the
// rest of the files each do one of its steps. Start with train.go.
package train
