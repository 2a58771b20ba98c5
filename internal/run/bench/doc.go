// Package bench measures how long training steps take, pass by pass. Run measures captures or made-up models, prints
// the table and compares it with an earlier file. The model stays as it is: learning rates are zero, nothing is
// refined.
package bench
