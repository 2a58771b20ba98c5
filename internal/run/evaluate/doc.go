// Package evaluate measures models on held-out photos. Run plans one Job for each model, opens the device once,
// measures and prints the tables. A ViewRound is the loop over photos that training shares; a Scorer follows one
// protocol.
package evaluate
