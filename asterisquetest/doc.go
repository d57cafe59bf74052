// Package asterisquetest is for tests of programs that use package asterisque. What it makes lives
// in memory, ends with the test, waits for nothing but what happens, and works in a bubble of
// [testing/synctest] as well as outside.
//
//   - [Connect] returns both ends of a session between two nodes, in one line. At the end of the
//     test it complains of calls that still run, and says where they were made. [Pair] does it
//     for nodes that differ, and over another Wire; [ConnectNodes] and [ConnectOver] connect nodes
//     that the test has made.
//   - [Peer] is the other side of a program, with functions that are written in the test. The
//     program dials it, gets a session with it, or calls on it as on any Caller. What the program
//     calls besides fails the test.
//   - [Fake] is a Caller without a session: it answers calls by functions of the test, with any
//     result, or with the very error that a lost session would give.
//   - [Recorder] is an interceptor that keeps which calls were made with what, and how they ended.
//
// Everything here may be used by any number of goroutines at the same time. What goes wrong fails
// the test by Errorf, so that the goroutine goes on, and Connect and what is like it by Fatalf.
package asterisquetest
