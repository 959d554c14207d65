/* SPDX-License-Identifier: ISC */
/* GET /api/v1/topology: the cluster's id, the list's version, the dispatchers. */
#include "api/handlers.h"
#include "wire/heartbeat.h"

void handle_topology(struct request *r)
{
	topology_format(service_topology(r->api->service), request_out(r));
	request_send(r, 200, CONTENT_JSON);
}
