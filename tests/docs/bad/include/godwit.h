int gw_named(void);
int gw_forgotten(void);
