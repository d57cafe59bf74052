// Package stdiowire is the [wire.Wire] between a program and a child process, over the child's
// standard input and output: for plugins, for workers that may crash alone, for programs at the
// other end of ssh.
//
// The parent starts the child and connects; the child takes over its own standard input and
// output and accepts. After that both ends have the same rights:
//
//	w, err := stdiowire.Start(exec.Command("./plugin")) // in the parent
//	session, err := node.Attach(ctx, w)
//
//	w, err := stdiowire.Stdio() // in the child, first of all
//	session, err := node.Accept(ctx, w)
//	<-session.Done() // the parent has closed the session, or died
//
// # Standard output and standard error
//
// The child's standard output belongs to the Wire, so nothing else may be printed there. [Stdio]
// ensures that in Go: later output goes to standard error. Text that was printed before is an error
// at the parent, which quotes it. Standard error is for log lines: the parent logs it, line by
// line.
//
// # End
//
// Close of the parent's Wire closes the child's standard input, which a child that uses this
// package sees as the end of its Wire. A child that has not ended after a grace period is killed;
// when Close has returned, the child has ended and was waited for. If a child fails, ReadFrame and
// WriteFrames of the parent return an error with the exit status and the last line of its standard
// error; the end of a child with exit status 0 is [io.EOF]. The Wire does not manage processes that
// the child starts.
//
// When the parent dies, the child's Wire ends as well, and the child continues until it ends
// itself: its later output and log lines are lost, and do not kill it, so that it can clean up. A
// child that does not call Stdio is killed by SIGPIPE when it writes then.
//
// # URLs
//
// [Register] adds the scheme "stdio" to [wire.Dial]. It is not registered by default: a user with
// control over a URL could choose a program to run.
package stdiowire
