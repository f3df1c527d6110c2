/*
 * local.h: private to eqn/.
 */
#ifndef EQN_LOCAL_H
#define EQN_LOCAL_H

#include "eqn/eqn.h"

ix_box eqn_box(arena *a, const sys_eqn *e);
/* where initial values live: the left axes, or the flat result of a scatter */
ix_box eqn_init_box(eqn_graph *g, const sys_eqn *e);
/* of one instance: see work.c */
int64_t eqn_flops(eqn_graph *g, const sys_eqn *e);
/* fills shape and name of u */
void eqn_name_shape(eqn_graph *g, eqn_unit *u);

#endif
