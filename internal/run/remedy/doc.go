// Package remedy says what a user can do about an error, whichever package it comes from.
package remedy
