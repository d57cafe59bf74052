// Package project holds the tests of what this project asks of its own files, in all modules.
package project
