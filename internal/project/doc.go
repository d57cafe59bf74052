// Package project tests the rules of this project for its own files, in all modules.
package project
