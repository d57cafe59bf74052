// Package stdiowire is the [wire.Wire] between a program and a child process, over the child's
// standard input and output: for plugins, for workers that may crash alone, for programs at the
// other end of ssh.
//
// The parent starts the child and connects; the child takes its own standard input and output and
// accepts. From then on both have the same rights:
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
// sees to that in Go: what is printed afterwards goes to standard error. Text that was printed
// before is an error at the parent that quotes it. Standard error is for people: the parent logs
// it, line by line.
//
// # How it ends
//
// Close of the parent's Wire closes the child's standard input, which a child that uses this
// package sees as the end of its Wire. A child that has not ended after a while is killed; when
// Close has returned, the child is gone and waited for. A child that dies is an error of the
// parent's ReadFrame and WriteFrames that names the exit status and the last line of its standard
// error; the end of a child with exit status 0 is [io.EOF]. Processes that the child starts are its
// own affair.
//
// When the parent dies, the child's Wire ends as well, and the child goes on until it ends itself:
// what it still prints or logs is lost, and does not kill it, so that it can clean up. A child that
// does not call Stdio is killed by SIGPIPE when it writes then.
//
// # URLs
//
// [Register] adds the scheme "stdio" to [wire.Dial]. It is not there by itself:
// somebody who can choose a URL could choose a program to run.
package stdiowire
