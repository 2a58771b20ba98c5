package lab

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// FreeAddress is an address of this machine at which nothing listens, for a server that is stopped and started again. Its port is none of those that systems give to
// connections, from 32768 on and up: one of these could take it meanwhile.
func FreeAddress() (address string, err error) {
	const from, to, tries = 20000, 32768, 100
	for range tries {
		address = fmt.Sprintf("127.0.0.1:%d", from+rand.IntN(to-from))
		var l net.Listener
		if l, err = net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", err
}
