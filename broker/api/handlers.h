/* SPDX-License-Identifier: ISC */
/* Inside api/: the handlers that routes.c knows. Each answers R, at once or later. */
#pragma once

#include "api/request.h"

void handle_healthz(struct request *r); /* health.c */
void handle_readyz(struct request *r);
void handle_metrics(struct request *r);	  /* metrics.c */
void handle_status(struct request *r);	  /* status.c */
void handle_topology(struct request *r);  /* topology.c */
void handle_connect(struct request *r);	  /* connections.c */
void handle_explain(struct request *r);	  /* explain.c */
void handle_heartbeat(struct request *r); /* heartbeat.c */
void handle_sessions(struct request *r);  /* sessions.c */
void handle_session_forget(struct request *r);
void handle_events(struct request *r); /* events.c */
void handle_list(struct request *r);   /* admin.c: /api/v1/KIND */
void handle_create(struct request *r);
void handle_show(struct request *r); /* /api/v1/KIND/NAME */
void handle_change(struct request *r);
void handle_remove(struct request *r);
void handle_maintenance(struct request *r);
