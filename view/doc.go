// Package view shows models in a browser: a server that only the user of this machine reaches, the web viewer that it serves, and pages that hold all
// of it in one file.
//
// Server knows nothing of splats: it guards what Handle registers, whoever that is. Whatever comes from the network is taken for hostile: see guard.go.
package view
