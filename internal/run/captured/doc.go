// Package captured holds what a run knows of its capture and writes beside its model: how it was read (Options,
// Source), which photos were held out (Record), what was subtracted from coordinates, and how the model was drawn while
// it was trained (Look). Evaluation and rendering read it back, so that they need no flags.
package captured
