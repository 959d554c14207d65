/* SPDX-License-Identifier: ISC */
/* Every bound that both ends of a message must know. Sizes of arrays include the NUL. */
#pragma once

#define LIMIT_NAME_SIZE 65           /* node, provider, pool, token and tag names */
#define LIMIT_ADDRESS_SIZE 256       /* IP address or host name */
#define LIMIT_USER_CHARS 256         /* code points of a user name as it came in */
#define LIMIT_USER_SIZE (256 * 4 + 1)
#define LIMIT_USER_KEY_SIZE (256 * 4 * 3 + 80) /* folding may grow a name; realm added */
#define LIMIT_SESSION_ID_SIZE 65
#define LIMIT_CLIENT_SIZE 257        /* client address or host, as reported */
#define LIMIT_TAG_TEXT_SIZE 1025     /* a tag request */
#define LIMIT_TAGS_PER_NODE 32
#define LIMIT_REASON_SIZE 257        /* an administrator's reason */
#define LIMIT_VERSION_SIZE 33
#define LIMIT_BOOT_ID_SIZE 37        /* UUID text */
#define LIMIT_SESSIONS 5000          /* sessions in a heartbeat */
#define LIMIT_LOGINS 5000            /* logins in a heartbeat */
#define LIMIT_BODY (1024 * 1024)     /* bytes of a request body */
#define LIMIT_JSON_DEPTH 8
#define LIMIT_JSON_VALUES 60000      /* values in one document */
#define LIMIT_DISPATCHERS 64         /* entries of a topology */

#define LOAD_INDEX_MAX 10000u        /* slv; takes no new user */
