// Package restart only contains tests, of servers that are replaced while clients call them. Each
// server is a process, because the tests are about sockets and the ends of processes.
package restart
