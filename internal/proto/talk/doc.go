// Package talk reads conversations between host and device, files that end in .talk, and plays them
// to an implementation of one side of the protocol (a party).
//
// A line is one of these; "#" begins a comment, and words are separated by spaces.
//
//	talk NAME                a conversation begins
//	only host: REASON        device parties do not play it (the device lies)
//	only device: REASON      host parties do not play it, nor the table (the host lies)
//	not by calls: REASON     a host that does what calls ask for, when it likes, does not play it
//	not by script: REASON    a device that is a script of a test does not play it
//	half d2h                 lines that name no half are about this one; h2d without the line
//	open KEY=N…              other than the defaults: next h2d=1 d2h=1 generation=9 window=4
//	                         limit=1099511627776 (bytes of the largest transfer) runs=0 (1: both
//	                         sides agreed on entries that are runs)
//	> SLOT                   the host puts a slot, and it arrives
//	>~ SLOT                  the host puts a slot; it arrives at the device with the line "~" only
//	~                        what is under way arrives at the device
//	< SLOT                   the device puts a slot, and it arrives at the host
//	= EVENT STATE            what the host makes of the last "<": an event and the half's state of
//	                         package proto; fault, closed and over have no state
//	host hold                a call of the host looks at the offer
//	host release             … and leaves it where it is
//	host shut                the host will close the half: what comes for it is stale
//	target CALL N…           the device's process calls: read N, read_ind SIZE, take SIZE
//	                         (and any message), question N (a question of so many bytes at most, or a
//	                         message), reply N, write N, write_ind SIZE (N and SIZE are bytes), wait (as channel_alt), close h2d|d2h|both, stop
//	target returns N|STATUS  its call has returned
//	target pending           … has not returned
//	device slow              from here on no copy of the device's engine ends
//	device fails             … each fails
//	device busy N            … the first N find their page busy
//	device hasty             … the device gives each offer a deadline
//	device works             … the engine copies at once, as it does without these lines
//
// A SLOT is its type as in firmware/nfc_abi.h without NFC_TYPE_, or a number, then the
// transaction id (not of CLOSE), and then words and key=N in any order: h2d, d2h, both; the state
// of a record; its status; any field: length size timeout processed outstanding lists fault list
// count pages (of a run) sum (1: a list asks for a checksum) now (1: a question for a target that waits) halves generation, and to lie also epoch channel sequence state status direction rsvd. A field
// that is not named is as an honest party would put: a message of 8 bytes, the state of DONE, FAILED for
// ERROR and ABORTED, the sequence of the transaction, and the entries of list N of a buffer that
// begins at [Address]. A device party must put what is named, and may put anything else where nothing is.
//
// The order of lines is that in which the host sees things. A fault is the end of a conversation.
//
// A party in this process implements [Host] or [Device]. One in another language is a program that
// answers lines on its standard input with lines on its standard output, see [Program].
package talk
