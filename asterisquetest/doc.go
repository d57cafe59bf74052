// Package asterisquetest is for tests of programs that use package asterisque. Its sessions are in
// memory and end with the test. It never waits for a fixed time, and works in a bubble of
// [testing/synctest] as well as outside.
//
//   - [Connect] returns both ends of a session between two nodes, in one line. At the end of the
//     test it reports calls that still run, and where they were made. [Pair] does it for different
//     nodes, and over another Wire; [ConnectNodes] and [ConnectOver] connect nodes that the test
//     has made.
//   - [Peer] is the other side of a program, with functions that are written in the test. The
//     program dials it, gets a session with it, or makes calls on it as on any Caller. A call of
//     any other function fails the test.
//   - [Fake] is a Caller without a session: it answers calls by functions of the test, with any
//     result, or with the error of a lost session.
//   - [Recorder] is an interceptor that records calls, their parameters, and their outcome.
//
// Everything here may be used by any number of goroutines at the same time. Failures are reported
// by Errorf, so that the goroutine continues; Connect and similar functions use Fatalf.
package asterisquetest
