// Package restart has tests only: of servers that are replaced by others while they are called.
// Each server is a process, for it is the sockets and the ends of processes that they are about.
package restart
